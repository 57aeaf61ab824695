//! Deep equality, where 1 equals 1.0 and the order of members does not matter, and the search for duplicates, which
//! takes linear time.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::Value;

use super::compiled_schema::UniqueItems;
use crate::number;
use crate::types::TypeSet;

pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number::compare(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

/// Up to this many items, comparing each with each is faster than hashing.
const MAX_PAIRWISE: usize = 12;

/// The indices of two equal items, as Ajv reports them (its `i` and `j`).
pub fn find_duplicate(items: &[Value], how: UniqueItems) -> Option<(usize, usize)> {
    let repeats = |(index, item)| items.iter().take(index).any(|earlier| equal(item, earlier));
    if items.len() <= MAX_PAIRWISE && !items.iter().enumerate().any(repeats) {
        return None;
    }
    match how {
        // Ajv searches from the end and stops at the first repeated item.
        UniqueItems::Scalars(types) => repeated_items(items, types).next(),
        // Ajv reports the last item with an equal one before it.
        UniqueItems::Pairs => {
            let repeated = repeated_items(items, TypeSet::ALL);
            repeated.max_by_key(|(lower, higher)| (*higher, *lower)).map(|(lower, higher)| (higher, lower))
        }
    }
}

/// From the end: each item that has an equal one after it, with the last of those.
fn repeated_items(items: &[Value], types: TypeSet) -> impl Iterator<Item = (usize, usize)> {
    let state = RandomState::new();
    let mut last_by_hash: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
    let candidates = items.iter().enumerate().rev().filter(move |(_, item)| types.accepts(item));
    candidates.filter_map(move |(index, item)| {
        let same_hash = last_by_hash.entry(hash(&state, item)).or_default();
        let is_equal = |other: &&usize| items.get(**other).is_some_and(|other| equal(item, other));
        if let Some(last) = same_hash.iter().find(is_equal) {
            return Some((index, *last));
        }
        same_hash.push(index);
        None
    })
}

fn hash(state: &RandomState, value: &Value) -> u64 {
    let mut hasher = state.build_hasher();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(value) => (1_u8, value).hash(&mut hasher),
        Value::Number(value) => {
            // Adding zero makes -0 and 0 the same.
            (2_u8, (number::float(value) + 0.0).to_bits()).hash(&mut hasher);
        }
        Value::String(value) => (3_u8, value).hash(&mut hasher),
        Value::Array(items) => {
            4_u8.hash(&mut hasher);
            items.iter().for_each(|item| hash(state, item).hash(&mut hasher));
        }
        Value::Object(members) => {
            let mixed = members.iter().fold(5_u64, |sum, (name, value)| {
                sum.wrapping_add(state.hash_one((name, hash(state, value))))
            });
            mixed.hash(&mut hasher);
        }
    }
    hasher.finish()
}
