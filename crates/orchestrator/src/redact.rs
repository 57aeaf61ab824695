//! Arguments marked `writeOnly` in the schema: they reach the handler, and nothing that is shown, logged or audited.

use serde_json::{Map, Value};

/// What stands in their place.
pub(crate) const HIDDEN: &str = "[redacted]";
/// Schemas refer to themselves; arguments end.
const DEEPEST: usize = 64;
/// Shorter texts would be found everywhere.
const SHORTEST_SECRET: usize = 4;

/// Whether a schema marks anything at all.
pub(crate) fn marks_anything(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("writeOnly") == Some(&Value::Bool(true)) || members.values().any(marks_anything)
        }
        Value::Array(items) => items.iter().any(marks_anything),
        _ => false,
    }
}

/// The arguments as they may be shown.
pub(crate) fn redacted(schema: &Value, args: &Value) -> Value {
    let mut shown = args.clone();
    walk(schema, schema, &mut shown, DEEPEST, &mut |value| *value = HIDDEN.into());
    shown
}

/// Whether a schema marks this argument.
pub(crate) fn hides(schema: &Value, name: &str) -> bool {
    let args = Value::Object(Map::from_iter([(name.to_owned(), Value::Null)]));
    redacted(schema, &args).get(name) != Some(&Value::Null)
}

/// Puts back what an editor was shown only a placeholder of.
pub(crate) fn restore(edited: &mut Value, original: &Value) {
    match (edited, original) {
        (edited, original) if edited == HIDDEN => *edited = original.clone(),
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

/// The texts that must not appear anywhere.
pub(crate) fn secrets(schema: &Value, args: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, schema, &mut args.clone(), DEEPEST, &mut |value| texts(value, &mut found));
    found.retain(|text| text.len() >= SHORTEST_SECRET);
    // As they stand inside JSON text.
    let escaped: Vec<String> = found.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    let escaped = escaped.iter().map(|text| text.trim_matches('"').to_owned());
    let escaped: Vec<String> = escaped.filter(|text| !found.contains(text)).collect();
    found.extend(escaped);
    // A secret that contains another is hidden first.
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found
}

/// Hides secrets in a text.
pub(crate) fn scrub(text: &mut String, secrets: &[String]) {
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        if text.contains(secret.as_str()) {
            *text = text.replace(secret.as_str(), HIDDEN);
        }
    }
}

/// Hides secrets in every text of a value.
pub(crate) fn scrub_value(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => scrub(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub_value(item, secrets)),
        Value::Object(members) => members.values_mut().for_each(|member| scrub_value(member, secrets)),
        Value::Number(number) if secrets.contains(&number.to_string()) => *value = HIDDEN.into(),
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

/// Calls `mark` on every value that a schema at its place marks.
fn walk(root: &Value, schema: &Value, value: &mut Value, depth: usize, mark: &mut dyn FnMut(&mut Value)) {
    let Some(keywords) = schema.as_object() else { return };
    // Deeper than anyone looks: better too little is shown than too much.
    let Some(depth) = depth.checked_sub(1) else { return mark(value) };
    if keywords.get("writeOnly") == Some(&Value::Bool(true)) {
        return mark(value);
    }
    if let Some(target) = keywords.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'))
        && let Some(target) = root.pointer(target)
    {
        walk(root, target, value, depth, mark);
    }
    for branch in
        ["allOf", "anyOf", "oneOf"].iter().filter_map(|name| keywords.get(*name)?.as_array()).flatten()
    {
        walk(root, branch, value, depth, mark);
    }
    for branch in keywords.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
        walk(root, branch.1, value, depth, mark);
    }
    for branch in ["if", "then", "else"].iter().filter_map(|name| keywords.get(*name)) {
        walk(root, branch, value, depth, mark);
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                of_member(keywords, name).for_each(|schema| walk(root, schema, member, depth, mark));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                of_item(keywords, at).for_each(|schema| walk(root, schema, item, depth, mark));
            }
        }
        _ => {}
    }
}

/// The schemas that may speak of a member. Patterns are not matched: better too little is shown than too much.
fn of_member<'s>(keywords: &'s Map<String, Value>, name: &str) -> impl Iterator<Item = &'s Value> {
    let own = keywords.get("properties").and_then(|properties| properties.get(name));
    let patterns = keywords.get("patternProperties").and_then(Value::as_object);
    let others =
        || ["additionalProperties", "unevaluatedProperties"].iter().find_map(|name| keywords.get(*name));
    patterns.into_iter().flat_map(Map::values).chain(own.or_else(others))
}

/// The schemas that may speak of an element.
fn of_item(keywords: &Map<String, Value>, at: usize) -> impl Iterator<Item = &Value> {
    let own = keywords.get("prefixItems").and_then(|first| first.get(at));
    let others = || ["items", "unevaluatedItems"].iter().find_map(|name| keywords.get(*name));
    keywords.get("contains").into_iter().chain(own.or_else(others))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_are_hidden_wherever_they_stand() {
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
        assert!(marks_anything(&schema));
        assert_eq!(
            redacted(&schema, &args),
            json!({ "password": "[redacted]", "nested": { "pin": "[redacted]", "name": "n" },
                "keys": ["[redacted]", "[redacted]"], "either": "[redacted]",
                "self": { "password": "[redacted]" }, "x": 1 })
        );
        let secrets = secrets(&schema, &args);
        assert_eq!(secrets, ["secret three", "deep secret", "secret one", "secret two", "12345"]);
        let mut told = json!({ "message": "no deep secret, pin 12345", "n": 12345 });
        scrub_value(&mut told, &secrets);
        assert_eq!(told, json!({ "message": "no [redacted], pin [redacted]", "n": "[redacted]" }));
        assert!(!marks_anything(&json!({ "properties": { "writeOnly": { "type": "boolean" } } })));
    }
}
