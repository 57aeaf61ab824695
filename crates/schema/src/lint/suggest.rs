//! Help for the author: the nearest known name, and the well-known moves from other drafts and
//! dialects.

use toolwright_contract::suggest::nearest;

pub fn did_you_mean<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Help for a keyword that strict mode does not know.
pub fn for_keyword(name: &str) -> Option<String> {
    moved_keyword(name).map(str::to_owned).or_else(|| {
        let known = super::keyword::NAMES.iter().copied().filter(|known| !NOT_SUGGESTED.contains(known));
        did_you_mean(name, known)
    })
}

/// Known to Ajv, but no keyword to send an author to.
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
];

fn moved_keyword(name: &str) -> Option<&'static str> {
    Some(match name {
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
        _ => return None,
    })
}

/// Help for a type name that does not exist.
pub fn for_type(name: &str) -> Option<String> {
    let moved = match name.to_lowercase().as_str() {
        "any" | "mixed" | "unknown" => "leave `type` out to allow any value",
        "int" | "long" | "short" | "int32" | "int64" => "did you mean `integer`?",
        "float" | "double" | "decimal" => "did you mean `number`?",
        "str" | "text" | "date" | "datetime" | "date-time" | "uuid" | "uri" => "did you mean `string`?",
        "dict" | "map" | "record" | "struct" => "did you mean `object`?",
        "list" | "tuple" | "set" => "did you mean `array`?",
        "none" | "nil" | "undefined" => "did you mean `null`?",
        "file" => "files are passed as strings: use `string`",
        _ => return did_you_mean(name, super::types::NAMES),
    };
    Some(moved.to_owned())
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
