//! The executions of a session whose envelopes are on disk only. A day's worth of them is indexed, so an entry is
//! small: a hash of the id leads to the number, and the disk has the rest.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Ordered by the hashes of the ids, of which two may be equal.
#[derive(Default)]
pub struct EvictedExecutions {
    entries: BTreeSet<EvictedExecution>,
    hasher: RandomState,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictedExecution {
    hash: u32,
    /// When it was claimed, in seconds since 1970, rounded up, so that it is never deleted too early.
    second: u32,
    pub number: u64,
}

impl EvictedExecution {
    /// Milliseconds since 1970.
    pub fn claimed_at(self) -> i64 {
        i64::from(self.second) * 1000
    }
}

impl EvictedExecutions {
    pub fn insert(&mut self, id: &str, number: u64, claimed_at: i64) {
        let second = u32::try_from((claimed_at + 999).div_euclid(1000).max(0)).unwrap_or(u32::MAX);
        self.entries.insert(EvictedExecution { hash: self.hash(id), second, number });
    }

    /// The entries that may have this id, without the numbers in `excluded`, which are known to have another.
    pub fn candidates<'a>(
        &'a self,
        id: &str,
        excluded: &'a [u64],
    ) -> impl Iterator<Item = EvictedExecution> + 'a {
        let hash = self.hash(id);
        let first = EvictedExecution { hash, second: 0, number: 0 };
        let last = EvictedExecution { hash, second: u32::MAX, number: u64::MAX };
        self.entries.range(first..=last).copied().filter(|entry| !excluded.contains(&entry.number))
    }

    /// Whether it was there.
    pub fn remove(&mut self, entry: EvictedExecution) -> bool {
        self.entries.remove(&entry)
    }

    pub fn retain(&mut self, keep: impl FnMut(&EvictedExecution) -> bool) {
        self.entries.retain(keep);
    }

    pub fn iter(&self) -> impl Iterator<Item = EvictedExecution> + '_ {
        self.entries.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn hash(&self, id: &str) -> u32 {
        self.hasher.hash_one(id) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_found_by_id_until_they_are_excluded() {
        let mut evicted = EvictedExecutions::default();
        for number in 0..50_000 {
            evicted.insert(&format!("call {number}"), number, 1_780_000_000_001);
        }
        for number in (0..50_000).step_by(997) {
            let id = format!("call {number}");
            let found: Vec<_> = evicted.candidates(&id, &[]).map(|entry| entry.number).collect();
            assert!(found.contains(&number), "{id}");
            assert!(evicted.candidates(&id, &found).next().is_none());
        }
        assert_eq!(evicted.len(), 50_000);
    }

    #[test]
    fn the_rounded_time_is_never_before_the_claim() {
        let mut evicted = EvictedExecutions::default();
        for (number, at) in [(1, 1_780_000_000_000), (2, 1_780_000_000_001), (3, 1_780_000_000_999)] {
            evicted.insert("x", number, at);
            let entry = evicted.iter().find(|entry| entry.number == number).unwrap();
            assert!((0..1000).contains(&(entry.claimed_at() - at)), "{at}");
        }
    }
}
