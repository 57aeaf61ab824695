//! The calls of a session whose envelopes are on disk alone. A day's worth of them is kept, so each takes a few bytes: a
//! hash of its id leads to its number, and the disk knows the rest.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// By the hashes of their ids; two calls may have the same one.
#[derive(Default)]
pub struct Stored {
    calls: BTreeSet<Call>,
    hasher: RandomState,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    hash: u32,
    /// When it was made, in seconds since 1970: the next whole one, so that it is never forgotten too early.
    second: u32,
    pub number: u64,
}

impl Call {
    /// Milliseconds since 1970.
    pub fn at(self) -> i64 {
        i64::from(self.second) * 1000
    }
}

impl Stored {
    pub fn insert(&mut self, id: &str, number: u64, at: i64) {
        let second = u32::try_from((at + 999).div_euclid(1000).max(0)).unwrap_or(u32::MAX);
        self.calls.insert(Call { hash: self.hash(id), second, number });
    }

    /// The calls that may have this id, without those that are known to have another.
    pub fn with_id<'a>(&'a self, id: &str, others: &'a [u64]) -> impl Iterator<Item = Call> + 'a {
        let hash = self.hash(id);
        let first = Call { hash, second: 0, number: 0 };
        let last = Call { hash, second: u32::MAX, number: u64::MAX };
        self.calls.range(first..=last).copied().filter(|call| !others.contains(&call.number))
    }

    /// Whether it was there.
    pub fn remove(&mut self, call: Call) -> bool {
        self.calls.remove(&call)
    }

    pub fn retain(&mut self, keep: impl FnMut(&Call) -> bool) {
        self.calls.retain(keep);
    }

    pub fn iter(&self) -> impl Iterator<Item = Call> + '_ {
        self.calls.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    fn hash(&self, id: &str) -> u32 {
        self.hasher.hash_one(id) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_their_ids_until_they_are_ruled_out() {
        let mut stored = Stored::default();
        for number in 0..50_000 {
            stored.insert(&format!("call {number}"), number, 1_780_000_000_001);
        }
        for number in (0..50_000).step_by(997) {
            let id = format!("call {number}");
            let found: Vec<_> = stored.with_id(&id, &[]).map(|call| call.number).collect();
            assert!(found.contains(&number), "{id}");
            assert!(stored.with_id(&id, &found).next().is_none());
        }
        assert_eq!(stored.len(), 50_000);
    }

    #[test]
    fn no_call_seems_older_than_it_is() {
        let mut stored = Stored::default();
        for (number, at) in [(1, 1_780_000_000_000), (2, 1_780_000_000_001), (3, 1_780_000_000_999)] {
            stored.insert("x", number, at);
            let call = stored.iter().find(|call| call.number == number).unwrap();
            assert!((0..1000).contains(&(call.at() - at)), "{at}");
        }
    }
}
