//! The hash chain of the audit: every row has the hash of the row before, so that edits, gaps and reordering are
//! detected. A chain has one writer at a time. Where several processes write, the chain [`REGISTER`] lists all chains,
//! so that the deletion of a whole chain is detected. A missing end is detected only by comparison with heads that
//! were saved elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toolwright_registry::hex;

use super::records::{AuditEntry, AuditRow};
use crate::ids;

/// The chain that lists all chains of a store: its entries are their names.
pub const REGISTER: &str = "chains";

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
    #[error("row {position} of the register of chains was edited, or rows before it are missing")]
    Register { position: u64 },
    #[error("the chain {chain} is registered, and all of its rows are missing")]
    MissingChain { chain: String },
    #[error(
        "the chain {chain} is not registered: the register of chains was changed, or a server of an older version \
         has written the chain"
    )]
    Unregistered { chain: String },
    #[error(
        "row {position} of the chain {chain} is not the one whose hash was saved: rows were deleted or replaced"
    )]
    HeadMismatch { chain: String, position: u64 },
}

/// The end of a chain at some time. Saved elsewhere, it shows later that nothing before it was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub chain: String,
    /// The number of rows of the chain.
    pub position: u64,
    /// The hash of its last row.
    pub hash: String,
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

/// The row that registers a chain after the last row of the register.
pub fn registration(last: Option<Head>, chain: &str) -> AuditRow {
    let (position, previous) =
        last.map_or((1, FIRST_PREVIOUS.to_owned()), |last| (last.position + 1, last.hash));
    let hash = hex(&hash(&previous, REGISTER, position, chain));
    AuditRow { number: 0, chain: REGISTER.to_owned(), position, previous, hash, entry: chain.to_owned() }
}

/// Checks the rows of an audit: first those of the register, then the others in the order of their numbers.
#[derive(Debug, Default)]
pub struct Verifier {
    /// The last position and hash of each chain.
    heads: BTreeMap<String, (u64, String)>,
    /// `None` if the store has no register.
    registered: Option<BTreeSet<String>>,
    /// The hashes of saved heads whose rows have not been seen yet, by chain and position.
    saved: BTreeMap<(String, u64), String>,
    /// How many audit entries were checked.
    pub rows: u64,
}

impl Verifier {
    /// Checks also that the audit contains these heads. `register` has the rows of the register, if there is one.
    pub fn new(register: Option<&[AuditRow]>, saved: Vec<Head>) -> Result<Self, ChainError> {
        let saved = saved.into_iter().map(|head| ((head.chain, head.position), head.hash)).collect();
        let mut verifier = Self { registered: register.map(|_| BTreeSet::new()), saved, ..Self::default() };
        for row in register.unwrap_or_default() {
            verifier.link(row).map_err(|_| ChainError::Register { position: row.position })?;
            verifier.registered.get_or_insert_default().insert(row.entry.clone());
        }
        Ok(verifier)
    }

    /// Checks the next row.
    pub fn check(&mut self, row: &AuditRow) -> Result<(), ChainError> {
        self.link(row)?;
        if serde_json::from_str::<AuditEntry>(&row.entry).is_err() {
            return Err(ChainError::Unreadable { number: row.number });
        }
        self.rows += 1;
        Ok(())
    }

    /// Checks that the row continues its chain.
    fn link(&mut self, row: &AuditRow) -> Result<(), ChainError> {
        let number = row.number;
        if row.hash != hex(&hash(&row.previous, &row.chain, row.position, &row.entry)) {
            return Err(ChainError::Edited { number });
        }
        let (position, head) =
            self.heads.get(&row.chain).map_or((0, FIRST_PREVIOUS), |(at, head)| (*at, head.as_str()));
        if row.position != position + 1 || row.previous != head {
            return Err(ChainError::Gap { number });
        }
        if !self.saved.is_empty() {
            let place = (row.chain.clone(), row.position);
            if self.saved.get(&place) == Some(&row.hash) {
                self.saved.remove(&place);
            }
        }
        self.heads.insert(row.chain.clone(), (row.position, row.hash.clone()));
        Ok(())
    }

    /// Checks after the last row that no chain and no saved head is missing.
    pub fn finish(&self) -> Result<(), ChainError> {
        if let Some(registered) = &self.registered {
            let is_registered = |chain: &&String| *chain == REGISTER || registered.contains(*chain);
            if let Some(chain) = registered.iter().find(|chain| !self.heads.contains_key(*chain)) {
                return Err(ChainError::MissingChain { chain: chain.clone() });
            }
            if let Some(chain) = self.heads.keys().find(|chain| !is_registered(chain)) {
                return Err(ChainError::Unregistered { chain: chain.clone() });
            }
        }
        match self.saved.keys().next() {
            Some((chain, position)) => {
                Err(ChainError::HeadMismatch { chain: chain.clone(), position: *position })
            }
            None => Ok(()),
        }
    }

    /// The end of each chain, to be saved elsewhere.
    pub fn heads(&self) -> impl Iterator<Item = Head> {
        self.heads.iter().map(|(chain, (position, hash))| Head {
            chain: chain.clone(),
            position: *position,
            hash: hash.clone(),
        })
    }
}

fn hash(previous: &str, chain: &str, position: u64, entry: &str) -> [u8; 32] {
    ids::hash_of_parts([previous, chain, &position.to_string(), entry])
}
