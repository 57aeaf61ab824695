//! Deep equality, where 1 equals 1.0 and the order of members does not count, and the search for
//! duplicates, which stays linear for long arrays.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::Value;

use crate::validate::node::{Types, Unique};
use crate::validate::number;

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

/// Beyond so many items, hashing beats comparing each with each.
const FEW: usize = 12;

/// The indices Ajv reports for a duplicate, as its `i` and `j`.
pub fn duplicate(items: &[Value], how: Unique) -> Option<(usize, usize)> {
    if items.len() < 2 {
        return None;
    }
    let (types, scalars) = match how {
        Unique::Pairs => (Types(u8::MAX), false),
        Unique::Scalars(types) => (types, true),
    };
    let found = if items.len() <= FEW { by_pairs(items, types) } else { by_hash(items, types) };
    if !scalars {
        return found;
    }
    // Ajv walks from the end here: the last pair by its first member.
    found?;
    let last = items.iter().enumerate().rev().filter(|(_, item)| types.takes(item));
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::new();
    let state = RandomState::new();
    for (index, item) in last {
        let earlier = seen.entry(hash(&state, item)).or_default();
        let same = earlier.iter().find(|other| items.get(**other).is_some_and(|other| equal(item, other)));
        if let Some(same) = same {
            return Some((index, *same));
        }
        earlier.push(index);
    }
    None
}

fn by_pairs(items: &[Value], types: Types) -> Option<(usize, usize)> {
    for (index, item) in items.iter().enumerate().rev() {
        let before = items.get(..index).unwrap_or_default();
        if types.takes(item)
            && let Some(other) = before.iter().rposition(|other| equal(item, other))
        {
            return Some((index, other));
        }
    }
    None
}

/// Keeps, of equal items, only the latest: it is the one to report.
fn by_hash(items: &[Value], types: Types) -> Option<(usize, usize)> {
    let state = RandomState::new();
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
    let mut last = None;
    for (index, item) in items.iter().enumerate().filter(|(_, item)| types.takes(item)) {
        let earlier = seen.entry(hash(&state, item)).or_default();
        let same =
            earlier.iter_mut().find(|other| items.get(**other).is_some_and(|other| equal(item, other)));
        match same {
            Some(same) => {
                last = Some((index, *same));
                *same = index;
            }
            None => earlier.push(index),
        }
    }
    last
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
