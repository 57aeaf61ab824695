//! Defaults: filled in where an object lacks a property, and checked against the schema that gives them.

use serde_json::{Map, Value};

use super::subschemas::visit;
use super::validator::compile;

/// References followed while filling in; a cycle without data in between would never end.
const MAX_REFERENCES: usize = 64;

/// Adds what `value` lacks: the defaults of properties, in objects that are there, however deep.
/// Not inside `anyOf`, `oneOf`, `not` or `if`: which of them applies is not known yet.
pub fn fill_defaults(root: &Value, schema: &Value, value: &mut Value) {
    fill(root, schema, value, MAX_REFERENCES);
}

fn fill(root: &Value, schema: &Value, value: &mut Value, references: usize) {
    let Value::Object(keywords) = schema else { return };
    if let Some(target) = keywords.get("$ref").and_then(Value::as_str)
        && let Some(pointer) = target.strip_prefix('#')
        && let (Some(target), Some(left)) = (root.pointer(pointer), references.checked_sub(1))
    {
        fill(root, target, value, left);
    }
    for branch in keywords.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        fill(root, branch, value, references);
    }
    match value {
        Value::Object(members) => fill_members(root, keywords, members),
        Value::Array(items) => {
            let skipped = keywords.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
            if let Some(schema) = keywords.get("items") {
                items.iter_mut().skip(skipped).for_each(|item| fill(root, schema, item, MAX_REFERENCES));
            }
        }
        _ => {}
    }
}

fn fill_members(root: &Value, keywords: &Map<String, Value>, members: &mut Map<String, Value>) {
    for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
        match (members.get_mut(name), schema.get("default")) {
            (Some(member), _) => fill(root, schema, member, MAX_REFERENCES),
            (None, Some(default)) => {
                let mut added = default.clone();
                fill(root, schema, &mut added, MAX_REFERENCES);
                members.insert(name.clone(), added);
            }
            (None, None) => {}
        }
    }
}

/// The schemas whose own `default` they refuse: their pointers, and why. The schema has passed the linter.
pub fn refused_defaults(schema: &Value) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    visit(schema, &mut String::new(), &mut |pointer, subschema| {
        let Some(default) = subschema.get("default") else { return };
        if is_plainly_fine(subschema, default) {
            return;
        }
        let alone = stand_alone(schema, subschema);
        let mut default = default.clone();
        fill_defaults(&alone, &alone, &mut default);
        if let Ok(validator) = compile(&alone)
            && let Some(misfit) = validator.check(&alone, &default).into_iter().next()
        {
            refused.push((pointer.to_owned(), misfit.message));
        }
    });
    refused
}

/// The common case without compiling anything: a scalar of the right type, perhaps one of an enum.
fn is_plainly_fine(schema: &Value, default: &Value) -> bool {
    let Value::Object(keywords) = schema else { return true };
    keywords.iter().all(|(keyword, wanted)| match keyword.as_str() {
        "default" | "description" | "title" | "examples" | "deprecated" | "$comment" => true,
        "type" => match wanted.as_str() {
            Some("string") => default.is_string(),
            Some("boolean") => default.is_boolean(),
            Some("integer") => default.is_i64() || default.is_u64(),
            Some("number") => default.is_number(),
            _ => false,
        },
        "enum" => wanted.as_array().is_some_and(|words| words.contains(default)),
        "minimum" => default.as_f64() >= wanted.as_f64(),
        "maximum" => default.as_f64() <= wanted.as_f64(),
        _ => false,
    })
}

/// `subschema` with the definitions of its root, so that its references still lead somewhere.
fn stand_alone(root: &Value, subschema: &Value) -> Value {
    let mut alone = subschema.clone();
    if let (Value::Object(members), Some(definitions)) = (&mut alone, root.get("$defs")) {
        members.entry("$defs").or_insert_with(|| definitions.clone());
    }
    alone
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
mod tests;
