//! Help texts: the nearest known name, replacements for keywords of other drafts and dialects, values in messages.

use serde_json::Value;
use toolwright_contract::suggest::nearest;

use crate::keyword::KEYWORD_NAMES;
use crate::types::TypeSet;

pub fn did_you_mean<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Help for a keyword that strict mode does not know.
pub fn for_keyword(name: &str) -> Option<String> {
    let help = match name {
        "additionalItems" => "in 2020-12 the tuple is `prefixItems` and `items` is for the items after it",
        "$anchor" => {
            "strict mode does not know `$anchor`: refer to the schema by pointer, as in `#/$defs/name`"
        }
        "optional" => "leave the property out of the parent's `required` instead",
        "example" => "use `examples` with a list",
        "divisibleBy" => "use `multipleOf`",
        "disallow" => "use `not`",
        "extends" => "use `allOf`",
        "discriminator" => "remove it: `oneOf` with a `const` in each branch says the same",
        "enumNames" | "enumDescriptions" | "markdownDescription" => "put the text into `description`",
        _ if name.starts_with("x-") => "strict mode knows no extension keywords: remove it",
        _ => {
            let known = KEYWORD_NAMES.iter().copied().filter(|known| !NOT_SUGGESTED.contains(known));
            return did_you_mean(name, known);
        }
    };
    Some(help.to_owned())
}

/// Known to Ajv, but not to be recommended.
const NOT_SUGGESTED: &[&str] = &[
    "id",
    "nullable",
    "dependencies",
    "definitions",
    "$recursiveRef",
    "$recursiveAnchor",
    "$anchor",
    "$async",
    "$vocabulary",
    "additionalItems",
];

/// Help for an unknown type name.
pub fn for_type(name: &str) -> Option<String> {
    let help = match name.to_lowercase().as_str() {
        "any" | "mixed" | "unknown" => "leave `type` out to allow any value",
        "int" | "long" | "short" | "int32" | "int64" => "did you mean `integer`?",
        "float" | "double" | "decimal" => "did you mean `number`?",
        "str" | "text" | "date" | "datetime" | "date-time" | "uuid" | "uri" => "did you mean `string`?",
        "dict" | "map" | "record" | "struct" => "did you mean `object`?",
        "list" | "tuple" | "set" => "did you mean `array`?",
        "none" | "nil" | "undefined" => "did you mean `null`?",
        "file" => "files are passed as strings: use `string`",
        _ => return did_you_mean(name, TypeSet::ALL.names()),
    };
    Some(help.to_owned())
}

/// `a`, `a or b`, `a, b or c`.
pub fn either<'c>(names: impl Iterator<Item = &'c str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// A value in a message: scalars as JSON, arrays and objects by name.
pub fn describe(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    match value {
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => {
            let text = scalar.to_string();
            match text.char_indices().nth(MAX_CHARS) {
                Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
                None => text,
            }
        }
    }
}
