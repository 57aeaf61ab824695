//! The keywords of JSON Schema: what their values look like, and how to say them in words.

use serde_json::Value;

/// What schemas a keyword's value holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Schema,
    Schemas,
    Named,
    None,
}

/// What schemas the value of a keyword holds.
pub(super) fn shape(keyword: &str) -> Shape {
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
        | "contentSchema" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::Schemas,
        "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => Shape::Named,
        _ => Shape::None,
    }
}

/// Says where a schema comes from, or how its parts are named: nothing about values.
pub(super) fn is_bookkeeping(keyword: &str) -> bool {
    matches!(keyword, "$schema" | "id" | "$recursiveAnchor" | "$vocabulary" | "additionalItems")
}

/// Limits nothing, or nothing that is known.
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
        ) && shape(keyword) == Shape::None
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Whether a value is one that the keyword takes.
pub(super) fn fits(keyword: &str, value: &Value) -> bool {
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

/// A whole number from 0, also when it is written with a fraction of zero.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64))
}

/// Longer values would drown the description.
const LONGEST: usize = 240;

/// The constraint in words. `None` when words would not help.
pub(super) fn words(keyword: &str, value: &Value) -> Option<String> {
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
        "enum" => Some(format!("one of {}", listed(value))),
        "default" => Some(format!("default: {value}")),
        "examples" => Some(format!("for example {}", listed(value))),
        "example" => Some(format!("for example {value}")),
        "not" => Some(format!("must not match: {value}")),
        "propertyNames" => Some(format!("names of members: {value}")),
        "additionalProperties" => Some(format!("other members: {value}")),
        "contains" => Some(format!("at least one item must match: {value}")),
        _ => Some(format!("{keyword}: {value}")),
    }
    .filter(|words| words.len() <= LONGEST)
}

fn listed(value: &Value) -> String {
    let values = value.as_array().into_iter().flatten().map(Value::to_string);
    values.collect::<Vec<_>>().join(", ")
}

/// A description with notes after it.
pub(super) fn sentence(description: Option<&str>, notes: &[String]) -> String {
    let mut text = description.unwrap_or_default().trim_end().to_owned();
    if notes.is_empty() {
        return text;
    }
    let notes = notes.join("; ");
    let mut letters = notes.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    if text.is_empty() {
        return format!("{first}{}.", letters.as_str());
    }
    text.push_str(&format!(" ({first}{}.)", letters.as_str()));
    text
}
