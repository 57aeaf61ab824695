//! The hash chain of the audit: every row has the hash of the row before, so that edits, gaps and reordering are
//! detected. A chain has one writer at a time. A missing tail is detected only by comparison with a hash that was
//! saved elsewhere.

use toolwright_registry::hex;

use super::records::{AuditEntry, AuditRow};
use crate::ids;

const FIRST_PREVIOUS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The end of a chain.
#[derive(Debug, Clone)]
pub struct Chain {
    name: String,
    position: u64,
    head: [u8; 32],
}

/// Why a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("row {number} was edited: its contents do not match its hash")]
    Edited { number: u64 },
    #[error("row {number} does not follow the row before it: rows are missing or reordered")]
    Gap { number: u64 },
    #[error("row {number} is not an audit entry")]
    Unreadable { number: u64 },
}

impl Chain {
    pub fn new(name: impl Into<String>) -> Self {
        Self::resume(name, 0, [0; 32])
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows it has.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The hash of its last row.
    pub const fn head(&self) -> [u8; 32] {
        self.head
    }

    /// The chain that ends with this position and hash.
    pub fn resume(name: impl Into<String>, position: u64, head: [u8; 32]) -> Self {
        Self { name: name.into(), position, head }
    }

    /// Appends the text of an entry. `number` is the row's number in the store.
    pub fn append(&mut self, number: u64, entry: String) -> AuditRow {
        let previous = hex(&self.head);
        self.link(&entry);
        let (chain, position, hash) = (self.name.clone(), self.position, hex(&self.head));
        AuditRow { number, chain, position, previous, hash, entry }
    }

    /// Links the text of an entry to the end of the chain.
    pub fn link(&mut self, text: &str) {
        self.position += 1;
        self.head = hash(&hex(&self.head), &self.name, self.position, text);
    }
}

/// An entry's JSON, as it is hashed and stored.
pub fn text(entry: &AuditEntry) -> String {
    // An entry has string keys only, so it always serializes.
    serde_json::to_string(entry).unwrap_or_default()
}

/// Checks rows in the order of their numbers.
#[derive(Debug, Default)]
pub struct Verifier {
    heads: std::collections::BTreeMap<String, (u64, String)>,
    pub rows: u64,
}

impl Verifier {
    /// Checks the next row.
    pub fn check(&mut self, row: &AuditRow) -> Result<(), ChainError> {
        let number = row.number;
        if row.hash != hex(&hash(&row.previous, &row.chain, row.position, &row.entry)) {
            return Err(ChainError::Edited { number });
        }
        if serde_json::from_str::<AuditEntry>(&row.entry).is_err() {
            return Err(ChainError::Unreadable { number });
        }
        let (position, head) =
            self.heads.get(&row.chain).map_or((0, FIRST_PREVIOUS), |(at, head)| (*at, head.as_str()));
        if row.position != position + 1 || row.previous != head {
            return Err(ChainError::Gap { number });
        }
        self.heads.insert(row.chain.clone(), (row.position, row.hash.clone()));
        self.rows += 1;
        Ok(())
    }

    /// The last hash of each chain: saved elsewhere, they show a missing tail.
    pub fn heads(&self) -> impl Iterator<Item = (&str, &str)> {
        self.heads.iter().map(|(chain, (_, head))| (chain.as_str(), head.as_str()))
    }
}

fn hash(previous: &str, chain: &str, position: u64, entry: &str) -> [u8; 32] {
    ids::hash_of_parts([previous, chain, &position.to_string(), entry])
}
