//! The executions of a session whose envelopes are on disk only. A day's worth of them is indexed, so an entry is
//! small: a hash of the id leads to the number, and the disk has the rest.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// By the [`IdHash`] of their ids.
pub type EvictedExecutions = BTreeMap<IdHash, EvictedExecution>;

/// The first half of the SHA-256 of an id: different ids have different hashes.
pub type IdHash = [u8; 16];

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EvictedExecution {
    pub number: u64,
    /// When it was claimed, in seconds since 1970, rounded up, so that it is never deleted too early.
    second: u32,
}

pub fn id_hash(id: &str) -> IdHash {
    let digest: [u8; 32] = Sha256::digest(id).into();
    std::array::from_fn(|at| digest[at])
}

impl EvictedExecution {
    pub fn new(number: u64, claimed_at: i64) -> Self {
        let second = u32::try_from((claimed_at + 999).div_euclid(1000).max(0)).unwrap_or(u32::MAX);
        Self { number, second }
    }

    /// Milliseconds since 1970.
    pub fn claimed_at(&self) -> i64 {
        i64::from(self.second) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_found_by_id() {
        let mut evicted = EvictedExecutions::new();
        for number in 0..50_000 {
            let entry = EvictedExecution::new(number, 1_780_000_000_001);
            evicted.insert(id_hash(&format!("call {number}")), entry);
        }
        for number in (0..50_000).step_by(997) {
            let id = format!("call {number}");
            assert_eq!(evicted.get(&id_hash(&id)).map(|entry| entry.number), Some(number), "{id}");
        }
        assert_eq!(evicted.len(), 50_000);
    }

    #[test]
    fn the_rounded_time_is_never_before_the_claim() {
        for at in [1_780_000_000_000, 1_780_000_000_001, 1_780_000_000_999] {
            let rounded = EvictedExecution::new(1, at).claimed_at();
            assert!((0..1000).contains(&(rounded - at)), "{at}");
        }
    }
}
