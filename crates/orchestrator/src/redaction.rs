//! Redacts arguments that the schema marks `writeOnly`: they reach the handler, but no message, log or audit entry.

use serde_json::{Map, Value};

/// Replaces their values.
pub(crate) const REDACTED: &str = "[redacted]";
/// Schemas may be recursive.
const MAX_DEPTH: usize = 64;
/// Shorter texts would match unrelated text.
const MIN_SECRET_BYTES: usize = 4;

/// Whether a schema marks any value `writeOnly`.
pub(crate) fn has_write_only(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("writeOnly") == Some(&Value::Bool(true)) || members.values().any(has_write_only)
        }
        Value::Array(items) => items.iter().any(has_write_only),
        _ => false,
    }
}

/// The arguments without `writeOnly` values.
pub(crate) fn redacted(schema: &Value, args: &Value) -> Value {
    // Text that could not be read may have secrets anywhere.
    if !args.is_object() && has_write_only(schema) {
        return REDACTED.into();
    }
    let mut redacted = args.clone();
    visit_write_only(schema, schema, &mut redacted, MAX_DEPTH, &mut |value| *value = REDACTED.into());
    redacted
}

/// Whether a schema marks this argument `writeOnly`.
pub(crate) fn is_write_only(schema: &Value, name: &str) -> bool {
    let args = Value::Object(Map::from_iter([(name.to_owned(), Value::Null)]));
    redacted(schema, &args).get(name) != Some(&Value::Null)
}

/// Replaces the placeholders in edited arguments by the original values.
pub(crate) fn restore(edited: &mut Value, original: &Value) {
    match (edited, original) {
        (edited, original) if edited == REDACTED => *edited = original.clone(),
        (Value::Object(edited), Value::Object(original)) => {
            for (name, value) in edited {
                if let Some(original) = original.get(name) {
                    restore(value, original);
                }
            }
        }
        (Value::Array(edited), Value::Array(original)) => {
            edited.iter_mut().zip(original).for_each(|(edited, original)| restore(edited, original));
        }
        _ => {}
    }
}

/// The texts of `writeOnly` arguments, which must not appear in any output.
pub(crate) fn secrets(schema: &Value, args: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit_write_only(schema, schema, &mut args.clone(), MAX_DEPTH, &mut |value| texts(value, &mut found));
    found.retain(|text| text.len() >= MIN_SECRET_BYTES);
    // Also as they are written inside JSON text.
    let escaped = |text: &String| Value::from(text.as_str()).to_string().trim_matches('"').to_owned();
    let escaped: Vec<String> = found.iter().map(escaped).filter(|text| !found.contains(text)).collect();
    found.extend(escaped);
    // A secret that contains another is redacted first.
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found
}

/// Redacts secrets in a text.
pub(crate) fn scrub(text: &mut String, secrets: &[String]) {
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        if text.contains(secret.as_str()) {
            *text = text.replace(secret.as_str(), REDACTED);
        }
    }
}

/// Redacts secrets in every text of a value.
pub(crate) fn scrub_value(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => scrub(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub_value(item, secrets)),
        Value::Object(members) => members.values_mut().for_each(|member| scrub_value(member, secrets)),
        Value::Number(number) if secrets.contains(&number.to_string()) => *value = REDACTED.into(),
        _ => {}
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Calls `mark` on every value whose schema is `writeOnly`.
fn visit_write_only(
    root: &Value,
    schema: &Value,
    value: &mut Value,
    depth: usize,
    mark: &mut dyn FnMut(&mut Value),
) {
    let Some(keywords) = schema.as_object() else { return };
    // Too deep to check: redact it.
    let Some(depth) = depth.checked_sub(1) else { return mark(value) };
    if keywords.get("writeOnly") == Some(&Value::Bool(true)) {
        return mark(value);
    }
    for branch in schemas_in_place(root, keywords) {
        visit_write_only(root, branch, value, depth, mark);
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                member_schemas(keywords, name)
                    .for_each(|schema| visit_write_only(root, schema, member, depth, mark));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                item_schemas(keywords, at)
                    .for_each(|schema| visit_write_only(root, schema, item, depth, mark));
            }
        }
        _ => {}
    }
}

/// The schemas that may apply to the same value.
fn schemas_in_place<'s>(
    root: &'s Value,
    keywords: &'s Map<String, Value>,
) -> impl Iterator<Item = &'s Value> {
    let get = |name: &&str| keywords.get(*name);
    let path = keywords.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    let target = path.and_then(|path| root.pointer(path));
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(get).filter_map(Value::as_array).flatten();
    let dependent = keywords.get("dependentSchemas").and_then(Value::as_object);
    let conditional = ["if", "then", "else"].iter().filter_map(get);
    target.into_iter().chain(lists).chain(dependent.into_iter().flat_map(Map::values)).chain(conditional)
}

/// The schemas that may apply to a member. Patterns are not matched: all of them apply.
fn member_schemas<'s>(keywords: &'s Map<String, Value>, name: &str) -> impl Iterator<Item = &'s Value> {
    let own = keywords.get("properties").and_then(|properties| properties.get(name));
    let patterns = keywords.get("patternProperties").and_then(Value::as_object);
    let others =
        || ["additionalProperties", "unevaluatedProperties"].iter().find_map(|name| keywords.get(*name));
    patterns.into_iter().flat_map(Map::values).chain(own.or_else(others))
}

/// The schemas that may apply to an element.
fn item_schemas(keywords: &Map<String, Value>, at: usize) -> impl Iterator<Item = &Value> {
    let own = keywords.get("prefixItems").and_then(|first| first.get(at));
    let others = || ["items", "unevaluatedItems"].iter().find_map(|name| keywords.get(*name));
    keywords.get("contains").into_iter().chain(own.or_else(others))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn write_only_arguments_are_redacted_at_every_depth() {
        let schema = json!({
            "$defs": { "key": { "type": "string", "writeOnly": true } },
            "properties": {
                "password": { "writeOnly": true },
                "nested": { "properties": { "pin": { "type": "integer", "writeOnly": true }, "name": {} } },
                "keys": { "items": { "$ref": "#/$defs/key" } },
                "either": { "anyOf": [{ "type": "string", "writeOnly": true }, { "type": "null" }] },
                "self": { "$ref": "#" }
            }
        });
        let args = json!({ "password": { "a": "secret one" }, "nested": { "pin": 12345, "name": "n" },
            "keys": ["secret two", "abc"], "either": "secret three", "self": { "password": "deep secret" }, "x": 1 });
        assert!(has_write_only(&schema));
        assert_eq!(
            redacted(&schema, &args),
            json!({ "password": "[redacted]", "nested": { "pin": "[redacted]", "name": "n" },
                "keys": ["[redacted]", "[redacted]"], "either": "[redacted]",
                "self": { "password": "[redacted]" }, "x": 1 })
        );
        let secrets = secrets(&schema, &args);
        assert_eq!(secrets, ["secret three", "deep secret", "secret one", "secret two", "12345"]);
        let mut text = json!({ "message": "no deep secret, pin 12345", "n": 12345 });
        scrub_value(&mut text, &secrets);
        assert_eq!(text, json!({ "message": "no [redacted], pin [redacted]", "n": "[redacted]" }));
        assert!(!has_write_only(&json!({ "properties": { "writeOnly": { "type": "boolean" } } })));
    }
}
