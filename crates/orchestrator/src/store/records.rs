//! What is stored. Plain data; the back ends give it its form.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_contract::Mode;

use super::SharedEnvelope;

/// On whose behalf a session acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub id: String,
    pub org: Option<String>,
    #[serde(default)]
    pub roles: Vec<String>,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: String,
    pub client_id: String,
    pub principal: Principal,
    pub mode: Mode,
    /// The version of the toolset that it keeps until it ends.
    pub toolset: String,
    pub turn: u64,
    /// Retrieval calls of this turn.
    pub retrievals: u32,
    /// What handlers see as `context.session.state`, and what the state controller keeps.
    pub state: Value,
    /// Tools that the person need not be asked about again.
    pub remembered: Vec<String>,
    pub standing: SessionStanding,
    pub created_at: i64,
    pub expires_at: i64,
    /// Goes up with every update.
    pub revision: u64,
}

impl SessionRecord {
    /// The version of its toolset, without what tells handlers apart.
    pub fn registry_version(&self) -> &str {
        self.toolset.split('+').next().unwrap_or_default()
    }

    /// Whether a tool has asked for its end.
    pub fn is_ending(&self) -> bool {
        self.state.get(ENDING).is_some()
    }

    /// How it stands at this time: one whose time is over does not go on, whether or not anyone has noticed.
    pub fn standing_at(&self, now: i64) -> SessionStanding {
        if self.standing != SessionStanding::Active || self.expires_at > now {
            return self.standing;
        }
        // Its time was cut short: a tool has asked for its end, and nobody said that the farewell was heard.
        let is_ending = self.is_ending();
        if is_ending { SessionStanding::Ended } else { SessionStanding::Expired }
    }
}

/// The member of a session's state that says that it is about to end.
pub(crate) const ENDING: &str = "pendingEndVoiceSession";

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStanding {
    Active,
    Ended,
    Expired,
}

/// Whether the caller waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is on disk when the answer comes.
    Committed,
    /// It is on disk soon.
    Relaxed,
}

/// A call that wants to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub session: String,
    pub execution: Arc<str>,
    pub tool: Arc<str>,
    pub tool_version: Arc<str>,
    /// SHA-256 of tool and arguments as the caller sent them.
    pub digest: [u8; 32],
    /// It may run again after a crash.
    pub idempotent: bool,
    /// The turn that it was made in, and how many retrieval calls a turn allows; `None` for calls that cost nothing.
    /// The turn that is current when it is claimed pays.
    pub budget: Option<(u64, u32)>,
    /// The confirmation that it uses up.
    pub confirmation: Option<String>,
    pub now: i64,
    pub durability: Durability,
}

/// What a call may do.
#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    /// Run: it is yours.
    New,
    /// Wait: its owner, this process or another, is at it.
    Running,
    /// Answer with what was recorded.
    Finished(SharedEnvelope),
    /// It was begun by a process that is gone, and must not be begun again.
    InDoubt,
    /// The id belongs to another tool or other arguments.
    Conflict,
    /// The turn has used up its retrieval calls.
    OverBudget { used: u32 },
    /// The confirmation is not approved, or was used already.
    Unapproved,
}

/// How far a recorded execution has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub digest: [u8; 32],
    pub status: Status,
}

/// See [`Claimed`].
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    Running,
    Finished(SharedEnvelope),
    InDoubt,
    /// Its owner is gone, and it may be claimed anew.
    Abandoned,
}

/// What came of a claimed call.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    pub session: String,
    pub execution: Arc<str>,
    pub envelope: SharedEnvelope,
    pub audit: AuditEntry,
    pub now: i64,
    pub durability: Durability,
}

/// What a settlement came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// It stands.
    First,
    /// An earlier one stands, with this envelope.
    Earlier(SharedEnvelope),
    /// Nobody had claimed the call.
    Unclaimed,
}

/// What time has ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Swept {
    /// How many sessions have expired or ended.
    pub sessions: usize,
    /// The questions that have expired.
    pub questions: Vec<Arc<Confirmation>>,
}

/// A question to a person: may this call run?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    pub id: String,
    pub session: String,
    pub client_id: String,
    pub execution: String,
    pub tool: String,
    pub tool_version: String,
    /// The arguments as they would be run: validated, defaults filled in, clamped.
    pub args: Value,
    /// What takes their place once the question is closed, if some of them must not be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Value>,
    /// Whoever approved it has changed the arguments.
    #[serde(default)]
    pub is_edited: bool,
    /// SHA-256 of tool and arguments as the caller sent them; the claim carries the same.
    pub digest: [u8; 32],
    pub preview: String,
    /// SHA-256 of the token; the token itself is never stored.
    pub token_hash: [u8; 32],
    pub created_at: i64,
    pub expires_at: i64,
    pub answer: Answer,
    /// Who answered.
    pub decided_by: Option<String>,
    /// Why it was rejected.
    pub reason: Option<String>,
}

impl Confirmation {
    /// Whether this is the question about a call of this tool with these arguments, as its caller sent them.
    pub fn is_about(&self, tool: &str, args: &Value) -> bool {
        self.digest == crate::ids::digest(tool, args)
    }

    /// Whether this is the approval of that very call.
    pub(super) fn fits(&self, claim: &Claim) -> bool {
        self.answer == Answer::Approved
            && self.session == claim.session
            && *self.execution == *claim.execution
            && *self.tool == *claim.tool
            && *self.tool_version == *claim.tool_version
            && self.digest == claim.digest
    }

    /// The same question, asked again: only the newest token opens it. A question about another call does not change
    /// the one that waits.
    pub(super) fn renewed(&self, again: &Self) -> Self {
        let token_hash = if self.digest == again.digest { again.token_hash } else { self.token_hash };
        Self { token_hash, ..self.clone() }
    }

    /// As it is after a person's answer.
    pub(super) fn decided(&self, decision: Decision) -> Self {
        match decision {
            Decision::Approve { by, args, shown } => Self {
                answer: Answer::Approved,
                decided_by: Some(by),
                is_edited: args != self.args,
                args,
                shown,
                ..self.clone()
            },
            Decision::Reject { by, reason } => {
                Self { decided_by: Some(by), reason, ..self.closed(Answer::Rejected) }
            }
        }
    }

    /// As it is once nobody needs the arguments any more.
    pub(super) fn closed(&self, answer: Answer) -> Self {
        let mut closed = Self { answer, ..self.clone() };
        if let Some(shown) = closed.shown.take() {
            closed.args = shown;
        }
        closed
    }
}

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Pending,
    Approved,
    Rejected,
    Expired,
    /// Approved, and its call has been claimed.
    Used,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// With the arguments to run, which the approver may have edited.
    Approve {
        by: String,
        args: Value,
        /// See [`Confirmation::shown`].
        shown: Option<Value>,
    },
    Reject {
        by: String,
        reason: Option<String>,
    },
}

/// One line of the audit, before it is chained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Hex of the digest of the arguments; `writeOnly` ones are left out of it.
    pub args_digest: String,
    /// `ok`, or the error's type.
    pub outcome: String,
    pub duration_ms: u64,
    pub intents: Vec<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// One line of the audit, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// Its number in the store.
    pub number: u64,
    /// The process that wrote it; each has a chain of its own.
    pub chain: String,
    /// Its position in the chain, from 1.
    pub position: u64,
    /// The hash of the row before it in the chain; zeros for the first.
    pub previous: String,
    /// SHA-256 over previous, chain, position and the entry's text.
    pub hash: String,
    /// The entry, exactly as it was hashed.
    pub entry: String,
}
