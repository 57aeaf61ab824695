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
    let is_plain = name == "0" || name.starts_with(|first: char| matches!(first, '1'..='9'));
    is_plain.then(|| name.parse().ok())?.filter(|index| *index != u32::MAX)
}
