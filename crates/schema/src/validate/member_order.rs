//! The order in which JavaScript, and so Ajv, visits the members of an object: names that are array indices come first.

use serde_json::{Map, Value};

pub fn in_javascript_order(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = object.iter().collect();
    if object.keys().any(|name| array_index(name).is_some()) {
        members.sort_by_key(|(name, _)| array_index(name).unwrap_or(u32::MAX));
    }
    members
}

/// The array index that a name is, if it is one.
pub fn array_index(name: &str) -> Option<u32> {
    let digits = name.as_bytes();
    let is_plain = digits.first()?.is_ascii_digit() && (digits.len() == 1 || digits.first() != Some(&b'0'));
    if !is_plain {
        return None;
    }
    name.parse().ok().filter(|index| *index != u32::MAX)
}
