//! The entries of the audit: who did what, and who approved it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_contract::Principal;

use crate::steps::Steps;

/// Who has answered a confirmation request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApproverRecord {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// How they have proved that the request was theirs: `token`, `conversation` or `transport`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub via: String,
}

impl From<&str> for ApproverRecord {
    /// An approver of whom only the name is known.
    fn from(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }
}

/// A change of an argument by an approver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArgumentEdit {
    /// A JSON pointer.
    pub path: String,
    /// The value before and after, for people: without secrets. `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// One audit entry, before it is chained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    pub at: i64,
    pub event: String,
    pub session: String,
    pub client_id: String,
    pub tool: String,
    pub tool_version: String,
    pub registry_version: String,
    pub execution_id: String,
    /// Hex digest of the arguments without those that are `writeOnly`.
    pub args_digest: String,
    /// `ok`, or the error's type.
    pub outcome: String,
    pub duration_ms: u64,
    pub intents: Vec<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// The principal that made the call, and its org. Empty in entries of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// The execution id of the call whose handler made this one, in the same session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(default, skip_serializing_if = "Steps::is_empty")]
    pub steps: Steps,
    /// The person who has answered the confirmation request, in the entry of the answer and in that of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<ApproverRecord>,
    /// What that person has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<ArgumentEdit>,
}

impl AuditEntry {
    /// The name of the person who has answered the confirmation request.
    pub fn approver_id(&self) -> Option<&str> {
        self.approver.as_ref().map(|approver| approver.id.as_str())
    }

    /// Whether an approver has changed the arguments.
    pub fn is_edited(&self) -> bool {
        !self.edits.is_empty()
    }

    /// The key of its principal.
    pub fn principal_key(&self) -> Option<String> {
        let principal = || Principal { id: self.principal.clone(), org: self.org.clone(), roles: Vec::new() };
        (!self.principal.is_empty()).then(|| principal().key())
    }
}

/// One audit entry in its chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// Its number in the store.
    pub number: u64,
    /// The process that wrote it: each has its own chain.
    pub chain: String,
    /// Its position in the chain, from 1.
    pub position: u64,
    /// The hash of the row before it in the chain; zeros for the first.
    pub previous: String,
    /// SHA-256 over previous, chain, position and the entry's text.
    pub hash: String,
    /// The entry's JSON, exactly as it was hashed.
    pub entry: String,
}
