//! The keywords of JSON Schema: which values they accept, and how to describe them in words.

use serde_json::Value;

/// The subschemas in a keyword's value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subschemas {
    One,
    List,
    ByName,
    None,
}

/// The subschemas in the value of a keyword.
pub(super) fn subschemas(keyword: &str) -> Subschemas {
    match keyword {
        "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Subschemas::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Subschemas::List,
        "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => Subschemas::ByName,
        _ => Subschemas::None,
    }
}

/// Whether a keyword does not constrain values, or is unknown.
pub(super) fn is_annotation(keyword: &str) -> bool {
    keyword.starts_with('$')
        || !matches!(
            keyword,
            "const"
                | "enum"
                | "format"
                | "pattern"
                | "minLength"
                | "maxLength"
                | "minimum"
                | "maximum"
                | "exclusiveMinimum"
                | "exclusiveMaximum"
                | "multipleOf"
                | "minItems"
                | "maxItems"
                | "uniqueItems"
                | "minProperties"
                | "maxProperties"
                | "minContains"
                | "maxContains"
                | "default"
                | "examples"
                | "example"
                | "dependentRequired"
                | "dependencies"
                | "contentEncoding"
                | "contentMediaType"
        ) && subschemas(keyword) == Subschemas::None
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Whether a value is valid for the keyword.
pub(super) fn is_valid(keyword: &str, value: &Value) -> bool {
    let is_type = |value: &Value| value.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match keyword {
        "type" => match value {
            Value::Array(kinds) => {
                let is_new = |(at, kind): (usize, &Value)| is_type(kind) && !kinds[..at].contains(kind);
                !kinds.is_empty() && kinds.iter().enumerate().all(is_new)
            }
            kind => is_type(kind),
        },
        "title" | "description" | "$comment" | "format" | "pattern" | "$ref" | "$dynamicRef"
        | "contentEncoding" | "contentMediaType" => value.is_string(),
        "$id" => value.as_str().is_some_and(|id| !id.contains('#')),
        "$anchor" | "$dynamicAnchor" => value.as_str().is_some_and(is_anchor),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => count(value).is_some(),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "enum" | "examples" => value.as_array().is_some_and(|values| !values.is_empty()),
        "dependentRequired" | "$vocabulary" => {
            value.as_object().is_some_and(|entries| entries.values().all(are_names))
        }
        "dependencies" => value.as_object().is_some_and(|entries| {
            entries.values().all(|entry| entry.is_object() || entry.is_boolean() || are_names(entry))
        }),
        _ => true,
    }
}

fn is_anchor(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn are_names(value: &Value) -> bool {
    let Some(names) = value.as_array() else { return false };
    names.iter().enumerate().all(|(at, name)| name.is_string() && !names[..at].contains(name))
}

/// A whole number from 0, also if it is written as `1.0`.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64))
}

/// Longer texts do not fit into a description.
const MAX_TEXT_BYTES: usize = 240;

/// The constraint in words. `None` if that is too long.
pub(super) fn describe_keyword(keyword: &str, value: &Value) -> Option<String> {
    let counted = |limit: &str, noun: &str| {
        let count = count(value)?;
        Some(format!("{limit} {count} {noun}{}", if count == 1 { "" } else { "s" }))
    };
    match keyword {
        "minLength" => counted("at least", "character"),
        "maxLength" => counted("at most", "character"),
        "minItems" => counted("at least", "item"),
        "maxItems" => counted("at most", "item"),
        "minProperties" => counted("at least", "member"),
        "maxProperties" => counted("at most", "member"),
        "minimum" => Some(format!("at least {value}")),
        "maximum" => Some(format!("at most {value}")),
        "exclusiveMinimum" => Some(format!("more than {value}")),
        "exclusiveMaximum" => Some(format!("less than {value}")),
        "multipleOf" => Some(format!("a multiple of {value}")),
        "uniqueItems" => (value == true).then(|| "no item twice".to_owned()),
        "format" => value.as_str().map(|format| format!("format: {format}")),
        "pattern" => value.as_str().map(|pattern| format!("matches the regular expression {pattern}")),
        "const" => Some(format!("exactly {value}")),
        "enum" => Some(format!("one of {}", join_values(value))),
        "default" => Some(format!("default: {value}")),
        "examples" => Some(format!("for example {}", join_values(value))),
        "example" => Some(format!("for example {value}")),
        "not" => Some(format!("must not match: {value}")),
        "propertyNames" => Some(format!("names of members: {value}")),
        "additionalProperties" => Some(format!("other members: {value}")),
        "contains" => Some(format!("at least one item must match: {value}")),
        _ => Some(format!("{keyword}: {value}")),
    }
    .filter(|text| text.len() <= MAX_TEXT_BYTES)
}

fn join_values(value: &Value) -> String {
    let values = value.as_array().into_iter().flatten().map(Value::to_string);
    values.collect::<Vec<_>>().join(", ")
}

/// Appends notes, of which there is at least one, to a description.
pub(super) fn append_notes(description: Option<&str>, notes: &[String]) -> String {
    let notes = capitalize(&notes.join("; "));
    match description.unwrap_or_default().trim_end() {
        "" => format!("{notes}."),
        text => format!("{text} ({notes}.)"),
    }
}

/// The text with its first letter in upper case.
pub(super) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    first + letters.as_str()
}
