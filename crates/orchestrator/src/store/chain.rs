//! The hash chain of the audit: every row holds the hash of the one before, so that a change, a gap or another order
//! shows. A chain has one writer at a time; a tail that was cut off shows only against a head kept elsewhere.

use sha2::{Digest, Sha256};
use toolwright_contract::json::{write_plainly, write_string, write_value};
use toolwright_registry::hex;

use super::records::{AuditEntry, AuditRow};

const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The end of a chain.
#[derive(Debug, Clone)]
pub struct Chain {
    name: String,
    position: u64,
    head: [u8; 32],
}

/// What ties a row to the one before it.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    pub position: u64,
    pub previous: [u8; 32],
    pub hash: [u8; 32],
}

/// A row that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("row {number} was changed: its contents do not fit its hash")]
    Changed { number: u64 },
    #[error("row {number} does not follow the row before it: rows are missing, or in another order")]
    Gap { number: u64 },
    #[error("row {number} is not an audit entry")]
    Unreadable { number: u64 },
}

impl Chain {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), position: 0, head: [0; 32] }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hash of its last row.
    pub const fn head(&self) -> [u8; 32] {
        self.head
    }

    /// The chain that ends with this position and hash, to be gone on with.
    pub fn after(name: impl Into<String>, position: u64, head: [u8; 32]) -> Self {
        Self { name: name.into(), position, head }
    }

    /// Links the text of an entry to the end. `number` is the row's number in the store.
    pub fn link(&mut self, number: u64, entry: String) -> AuditRow {
        let Link { position, previous, hash } = self.link_text(&entry);
        AuditRow {
            number,
            chain: self.name.clone(),
            position,
            previous: hex(&previous),
            hash: hex(&hash),
            entry,
        }
    }

    /// Links the text of an entry to the end.
    pub fn link_text(&mut self, text: &str) -> Link {
        let position = self.position + 1;
        let hash = hash(&hex(&self.head), &self.name, position, text);
        let previous = std::mem::replace(&mut self.head, hash);
        self.position = position;
        Link { position, previous, hash }
    }
}

/// An entry's text, as it is hashed and kept: what `Serialize` gives, written with every call.
pub fn text(entry: &AuditEntry) -> String {
    let AuditEntry { at, duration_ms, intents, data, .. } = entry;
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(b"{\"at\":");
    write_plainly(at, &mut text);
    for (name, value) in [
        (",\"event\":", &entry.event),
        (",\"session\":", &entry.session),
        (",\"clientId\":", &entry.client_id),
        (",\"tool\":", &entry.tool),
        (",\"toolVersion\":", &entry.tool_version),
        (",\"registryVersion\":", &entry.registry_version),
        (",\"executionId\":", &entry.execution_id),
        (",\"argsDigest\":", &entry.args_digest),
        (",\"outcome\":", &entry.outcome),
    ] {
        text.extend_from_slice(name.as_bytes());
        write_string(value, &mut text);
    }
    text.extend_from_slice(b",\"durationMs\":");
    write_plainly(duration_ms, &mut text);
    text.extend_from_slice(b",\"intents\":[");
    for (index, intent) in intents.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_string(intent, &mut text);
    }
    text.push(b']');
    if !data.is_null() {
        text.extend_from_slice(b",\"data\":");
        write_value(data, &mut text);
    }
    text.push(b'}');
    // It is made of texts.
    String::from_utf8(text).unwrap_or_default()
}

/// Checks rows as they come, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Verifier {
    heads: std::collections::BTreeMap<String, (u64, String)>,
    pub rows: u64,
}

impl Verifier {
    /// Checks the next row. The first row of a chain may stand anywhere in it if rows before were exported and removed,
    /// which `from_start` forbids.
    pub fn check(&mut self, row: &AuditRow) -> Result<(), Broken> {
        let number = row.number;
        if row.hash != hex(&hash(&row.previous, &row.chain, row.position, &row.entry)) {
            return Err(Broken::Changed { number });
        }
        if serde_json::from_str::<AuditEntry>(&row.entry).is_err() {
            return Err(Broken::Unreadable { number });
        }
        let (position, head) =
            self.heads.get(&row.chain).map_or((0, FIRST), |(at, head)| (*at, head.as_str()));
        if row.position != position + 1 || row.previous != head {
            return Err(Broken::Gap { number });
        }
        self.heads.insert(row.chain.clone(), (row.position, row.hash.clone()));
        self.rows += 1;
        Ok(())
    }

    /// The last hash of each chain: kept elsewhere, they show a tail that was cut off.
    pub fn heads(&self) -> impl Iterator<Item = (&str, &str)> {
        self.heads.iter().map(|(chain, (_, head))| (chain.as_str(), head.as_str()))
    }
}

fn hash(previous: &str, chain: &str, position: u64, entry: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in [previous, chain, &position.to_string(), entry] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_text_of_an_entry_is_its_json() {
        let mut entry = AuditEntry {
            at: -1,
            event: "called".to_owned(),
            session: "a \"b\"".to_owned(),
            client_id: "é".to_owned(),
            tool: "echo".to_owned(),
            tool_version: "1.0.0".to_owned(),
            registry_version: String::new(),
            execution_id: "call\n1".to_owned(),
            args_digest: "00ff".to_owned(),
            outcome: "ok".to_owned(),
            duration_ms: u64::MAX,
            intents: Vec::new(),
            data: Value::Null,
        };
        assert_eq!(text(&entry), serde_json::to_string(&entry).unwrap());
        entry.intents = vec!["END_VOICE_SESSION".to_owned(), "unknown".to_owned()];
        entry.data = json!({ "clamped": { "top_k": [10, 3] } });
        assert_eq!(text(&entry), serde_json::to_string(&entry).unwrap());
    }
}
