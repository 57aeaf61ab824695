//! Compares a value with what a test expects: an equal value or a matcher (`{"$type": …}`).

use serde_json::{Map, Value};

/// The first difference and its place; `None` when the value matches.
pub(super) fn mismatch(expected: &Value, actual: &Value, place: &str) -> Option<String> {
    if let Some((name, operand)) = matcher(expected) {
        return apply(name, operand, actual, place);
    }
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => members(expected, actual, place).or_else(|| {
            let extra = actual.keys().find(|key| !expected.contains_key(*key))?;
            Some(format!("{place}.{extra} is not expected: {}", actual[extra]))
        }),
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let mut pairs = expected.iter().zip(actual).enumerate();
            pairs.find_map(|(at, (expected, actual))| mismatch(expected, actual, &format!("{place}[{at}]")))
        }
        (Value::Number(expected), Value::Number(actual)) if expected.as_f64() == actual.as_f64() => None,
        _ if expected == actual => None,
        _ => Some(format!("{place} is {actual}, not {expected}")),
    }
}

/// Compares the expected members; ignores others.
pub(super) fn members(
    expected: &Map<String, Value>,
    actual: &Map<String, Value>,
    place: &str,
) -> Option<String> {
    expected.iter().find_map(|(key, expected)| {
        let place = format!("{place}.{key}");
        match actual.get(key) {
            Some(actual) => mismatch(expected, actual, &place),
            None => Some(format!("{place} is missing")),
        }
    })
}

fn matcher(expected: &Value) -> Option<(&str, &Value)> {
    let members = expected.as_object().filter(|members| members.len() == 1)?;
    let (name, operand) = members.iter().next()?;
    name.starts_with('$').then_some((name.as_str(), operand))
}

fn apply(name: &str, operand: &Value, actual: &Value, place: &str) -> Option<String> {
    let is_met = match (name, operand) {
        ("$any", _) => true,
        ("$type", Value::String(wanted)) => wanted.split('|').any(|wanted| is_type(wanted.trim(), actual)),
        ("$length", Value::Number(wanted)) => length(actual) == wanted.as_u64(),
        ("$regex", Value::String(pattern)) => match fancy_regex::Regex::new(pattern) {
            Ok(regex) => actual.as_str().is_some_and(|text| regex.is_match(text).unwrap_or(false)),
            Err(error) => return Some(format!("{place}: `$regex` is not a regular expression: {error}")),
        },
        ("$includes", wanted) => return includes(wanted, actual, place),
        _ => return Some(format!("{place}: `{name}` is not a known matcher, or does not accept {operand}")),
    };
    if is_met { None } else { Some(format!("{place} is {actual}, which is not {name} {operand}")) }
}

/// `$includes`: some members of an object, one element of a list, or a part of a text.
fn includes(wanted: &Value, actual: &Value, place: &str) -> Option<String> {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => members(wanted, actual, place),
        (wanted, Value::Array(items)) => {
            let fits = |item: &Value| match (wanted, item) {
                (Value::Object(wanted), Value::Object(item)) => members(wanted, item, place).is_none(),
                _ => mismatch(wanted, item, place).is_none(),
            };
            if items.iter().any(fits) { None } else { Some(format!("{place} includes no {wanted}")) }
        }
        (Value::String(wanted), Value::String(actual)) if actual.contains(wanted.as_str()) => None,
        _ => Some(format!("{place} is {actual}, which does not include {wanted}")),
    }
}

fn length(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => Some(items.len() as u64),
        Value::Object(members) => Some(members.len() as u64),
        Value::String(text) => Some(text.chars().count() as u64),
        _ => None,
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_and_matchers_are_compared() {
        let matching = [
            (json!({"a": 1, "b": [1, 2]}), json!({"a": 1.0, "b": [1, 2]})),
            (json!({"$type": "string|null"}), json!(null)),
            (json!({"$type": "integer"}), json!(3)),
            (json!({"$regex": "^a+$"}), json!("aaa")),
            (json!({"$length": 2}), json!([1, 2])),
            (json!({"$includes": {"a": {"$any": true}}}), json!({"a": 1, "b": 2})),
            (json!({"$includes": {"a": 2}}), json!([{"a": 1}, {"a": 2, "b": 3}])),
            (json!({"$includes": "el"}), json!("hello")),
        ];
        for (expected, actual) in matching {
            assert_eq!(mismatch(&expected, &actual, "data"), None);
        }
        let differing = [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), "data.b is not expected: 2"),
            (json!({"a": [1, 2]}), json!({"a": [1, 3]}), "data.a[1] is 3, not 2"),
            (json!({"a": 1}), json!({}), "data.a is missing"),
            (json!({"$type": "string"}), json!(1), "data is 1, which is not $type \"string\""),
            (
                json!({"$nothing": 1}),
                json!(1),
                "data: `$nothing` is not a known matcher, or does not accept 1",
            ),
        ];
        for (expected, actual, message) in differing {
            assert_eq!(mismatch(&expected, &actual, "data").as_deref(), Some(message));
        }
    }
}
