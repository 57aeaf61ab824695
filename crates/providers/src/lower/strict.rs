//! OpenAI's strict mode, in which the service itself enforces the schema: only for schemas that it supports unchanged.
//!
//! Making every parameter required and nullable would make more schemas strict, and models would send nulls that the
//! tool rejects.

use serde_json::{Map, Value};

/// The keywords of a strict schema whose values are not restricted further.
const KEYWORDS: [&str; 15] = [
    "type",
    "required",
    "additionalProperties",
    "enum",
    "const",
    "description",
    "title",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// The lowest limits that were ever published: a schema that exceeds them is declared without strict mode.
const MAX_PROPERTIES: usize = 100;
const MAX_DEPTH: usize = 5;
const MAX_ENUM_VALUES: usize = 500;

/// Whether strict mode supports the schema. If so, adds the keywords that it requires.
pub(crate) fn enforce(schema: &mut Map<String, Value>) -> bool {
    let is_strict = schema.get("anyOf").is_none() && is_strict_schema(schema, 1, &mut Counts::default());
    if is_strict {
        schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    }
    is_strict
}

#[derive(Default)]
struct Counts {
    properties: usize,
    values: usize,
}

fn is_strict_schema(schema: &Map<String, Value>, depth: usize, counts: &mut Counts) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|known| known == name));
    let is_object = schema.get("type").is_some_and(|kind| kind == "object") || properties.is_some();
    counts.properties += properties.map_or(0, Map::len);
    counts.values += schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    let is_closed = !is_object
        || schema.get("additionalProperties") == Some(&Value::Bool(false))
            && properties.is_none_or(|properties| properties.keys().all(is_required));
    is_closed
        && (!is_object || depth <= MAX_DEPTH)
        && counts.properties <= MAX_PROPERTIES
        && counts.values <= MAX_ENUM_VALUES
        && schema.iter().all(|(keyword, value)| is_strict_keyword(schema, keyword, value, depth, counts))
}

fn is_strict_keyword(
    schema: &Map<String, Value>,
    keyword: &str,
    value: &Value,
    depth: usize,
    counts: &mut Counts,
) -> bool {
    let mut below =
        |value: &Value| value.as_object().is_some_and(|schema| is_strict_schema(schema, depth + 1, counts));
    match keyword {
        "properties" | "$defs" => value.as_object().is_some_and(|entries| entries.values().all(below)),
        "items" => below(value),
        "anyOf" => value.as_array().is_some_and(|branches| branches.iter().all(below)),
        "$ref" => schema.len() == 1 && value.as_str().is_some_and(|target| target.starts_with("#/$defs/")),
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        _ => KEYWORDS.contains(&keyword),
    }
}
