//! Audit entries that could not be written. Once writing works again, an entry in the chain says how many were lost,
//! and from when to when.

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolwright_contract::ErrorKind;

use super::records::AuditEntry;

const GAP_EVENT: &str = "gap";

/// The entries that were lost since the last one that was written. An entry whose caller tried again counts too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditGap {
    pub entries: u64,
    /// The times of the first and the last of them, if they are known.
    pub from: Option<i64>,
    pub to: Option<i64>,
}

impl AuditGap {
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Adds an entry that could not be written. It may be the entry of a gap.
    pub fn add(&mut self, entry: &AuditEntry) {
        let lost =
            if entry.event == GAP_EVENT { serde_json::from_value(entry.data.clone()).ok() } else { None };
        let Self { entries, from, to } =
            lost.unwrap_or(Self { entries: 1, from: Some(entry.at), to: Some(entry.at) });
        self.entries = self.entries.saturating_add(entries);
        self.from = self.from.into_iter().chain(from).min();
        self.to = self.to.into_iter().chain(to).max();
    }

    /// The entry to write. Its time is that of the last lost entry.
    pub fn entry(&self) -> AuditEntry {
        AuditEntry {
            at: self.to.unwrap_or_default(),
            event: GAP_EVENT.to_owned(),
            outcome: ErrorKind::Unavailable.to_string(),
            data: json!(self),
            ..AuditEntry::default()
        }
    }
}
