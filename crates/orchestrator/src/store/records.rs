//! The records of a store. Plain data; the back ends choose how to store it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_contract::{Mode, Principal};

use super::SharedEnvelope;
pub use super::audit_entry::{ApproverRecord, ArgumentEdit, AuditEntry, AuditRow};
use super::rate_windows::{RateCharge, RateExceeded};
use super::spent::{Charge, Spent, spent_or_retrievals};

/// A conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: String,
    pub client_id: String,
    pub principal: Principal,
    pub mode: Mode,
    /// The version of its toolset, which stays the same until the session ends.
    pub toolset: String,
    pub turn: u64,
    #[serde(default, alias = "retrievals", deserialize_with = "spent_or_retrievals")]
    pub spent: Spent,
    /// `context.session.state` of handlers, and the state controller's own fields.
    pub state: Value,
    /// Tools that run without a confirmation from now on.
    pub remembered: Vec<String>,
    #[serde(rename = "standing")]
    pub status: SessionStatus,
    pub created_at: i64,
    pub expires_at: i64,
    /// Incremented by every update.
    pub revision: u64,
}

impl SessionRecord {
    /// The version of its toolset, without the digest of the handlers.
    pub fn registry_version(&self) -> &str {
        self.toolset.split('+').next().unwrap_or_default()
    }

    /// The session as a call of this principal sees it: with its present roles. The stored session keeps those that it
    /// began with.
    pub(crate) fn with_principal(self: Arc<Self>, principal: &Principal) -> Arc<Self> {
        if self.principal == *principal {
            return self;
        }
        Arc::new(Self { principal: principal.clone(), ..(*self).clone() })
    }

    /// Whether a tool has asked to end it.
    pub fn is_ending(&self) -> bool {
        self.pending_end().is_some()
    }

    /// When a tool has asked to end it: `{after, endBy}`.
    pub fn pending_end(&self) -> Option<&Value> {
        self.state.get(PENDING_END)
    }

    /// Its status at this time, whether or not a sweep has recorded it.
    pub fn status_at(&self, now: i64) -> SessionStatus {
        if self.status != SessionStatus::Active || self.expires_at > now {
            return self.status;
        }
        // A session that was asked to end has a short expiry, in case the farewell is never reported as played.
        if self.is_ending() { SessionStatus::Ended } else { SessionStatus::Expired }
    }
}

/// The field of a session's state that says that it is about to end.
pub(crate) const PENDING_END: &str = "pendingEndVoiceSession";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Active,
    Ended,
    Expired,
}

/// A page of the sessions, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionQuery<'a> {
    /// Those of the principal with this key; `None`: all.
    pub principal: Option<&'a str>,
    /// Creation time and id of the session before the page.
    pub before: Option<(i64, &'a str)>,
    pub limit: usize,
}

/// The sessions of a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionPage {
    pub sessions: Vec<Arc<SessionRecord>>,
    /// Where the next page begins; `None`: there is nothing more. As an [`AuditPage`](super::AuditPage), a page may
    /// have fewer sessions than its limit and be followed by others.
    pub next: Option<(i64, String)>,
}

/// A stored toolset, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsetInfo {
    /// As [`SessionRecord::toolset`].
    pub id: String,
    pub created_at: i64,
    /// When a session was last created with it, to within a quarter of an hour.
    pub used_at: i64,
    /// How many tools it has.
    pub tools: u32,
    /// The size of its content.
    pub bytes: u64,
}

/// A stored toolset, whole. Its content is named by its id, so it never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsetRecord {
    pub info: ToolsetInfo,
    pub content: Arc<[u8]>,
}

/// A client of a principal that is refused until a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRecord {
    /// Empty when the principal has no org.
    pub org: String,
    pub principal: String,
    pub client_id: String,
    pub until: i64,
}

impl BlockRecord {
    pub fn new(principal: &Principal, client_id: &str, until: i64) -> Self {
        let org = principal.org.clone().unwrap_or_default();
        Self { org, principal: principal.id.clone(), client_id: client_id.to_owned(), until }
    }

    /// Org, principal and client.
    pub(super) fn key(&self) -> (String, String, String) {
        (self.org.clone(), self.principal.clone(), self.client_id.clone())
    }

    /// Reads a block of a store of before: there it was a session that had this id and no toolset.
    pub(super) fn from_session(session: &SessionRecord) -> Option<Self> {
        let is_block = session.id.starts_with("block_") && session.toolset.is_empty();
        is_block.then(|| Self::new(&session.principal, &session.client_id, session.expires_at))
    }
}

/// Whether the caller waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The change is on disk when the operation returns.
    Committed,
    /// The change reaches the disk soon after.
    Relaxed,
}

/// An execution that asks to run.
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
    /// Its costs. The turn that is current when it is claimed pays.
    pub charges: Vec<Charge>,
    /// The rate limits that it counts for, in the order in which they refuse it.
    pub rates: Vec<RateCharge>,
    /// The confirmation that it uses up.
    pub confirmation: Option<String>,
    pub now: i64,
    pub durability: Durability,
    /// The [`Store::lease`](super::Store::lease) that the claim has to belong to; `None`: the current one.
    pub lease: Option<u64>,
}

/// Whether an execution may run.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimOutcome {
    /// Run it: this caller owns it.
    New,
    /// Its owner, this process or another, is running it.
    Running,
    /// Return the recorded envelope.
    Finished(SharedEnvelope),
    /// Its owner is gone, and it must not be repeated.
    InDoubt,
    /// The id belongs to another tool or other arguments.
    Conflict,
    /// A charge would exceed its limit.
    OverBudget { meter: String, spent: u32 },
    /// A rate limit is used up.
    RateLimited(RateExceeded),
    /// The confirmation is not approved, or was used already.
    Unapproved,
    /// The lease that it has to belong to has expired: nothing was claimed.
    LeaseExpired,
}

/// A claimed execution.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionRecord {
    pub digest: [u8; 32],
    /// Its arguments as JSON text, without those that are `writeOnly`. `None` until it is settled, and in records of
    /// earlier versions.
    pub args: Option<Arc<str>>,
    pub status: ExecutionStatus,
}

/// See [`ClaimOutcome`].
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutionStatus {
    Running,
    Finished(SharedEnvelope),
    InDoubt,
    /// Its owner is gone, and it may be claimed again.
    Abandoned,
}

/// The end of a claimed execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    pub session: String,
    pub execution: Arc<str>,
    pub envelope: SharedEnvelope,
    /// See [`ExecutionRecord::args`].
    pub args: Option<Arc<str>>,
    pub audit: AuditEntry,
    pub durability: Durability,
}

/// Whether a settlement was recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum SettleOutcome {
    Recorded,
    /// An earlier settlement has recorded this envelope.
    AlreadySettled(SharedEnvelope),
    /// Another process has taken this one for dead and claimed the execution: its settlement counts.
    TakenOver,
    /// The execution was never claimed.
    Unclaimed,
}

/// The records that a sweep has expired.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SweepOutcome {
    /// How many sessions have expired or ended.
    pub sessions: usize,
    pub confirmations: Vec<Arc<ConfirmationRecord>>,
}

/// A confirmation request: a person is asked whether an execution may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationRecord {
    pub id: String,
    pub session: String,
    /// The key of the session's principal. Empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    pub client_id: String,
    pub execution: String,
    pub tool: String,
    pub tool_version: String,
    /// The arguments as they would run: validated, defaults filled in, clamped.
    pub args: Value,
    /// Replaces the arguments once the confirmation is closed, if some of them are secret.
    #[serde(default, rename = "shown", skip_serializing_if = "Option::is_none")]
    pub redacted_args: Option<Value>,
    /// The approver has changed the arguments.
    #[serde(default)]
    pub is_edited: bool,
    /// SHA-256 of tool and arguments as the caller sent them; the claim has the same.
    pub digest: [u8; 32],
    pub preview: String,
    /// SHA-256 of the token; the token itself is never stored.
    pub token_hash: [u8; 32],
    pub created_at: i64,
    pub expires_at: i64,
    #[serde(rename = "answer")]
    pub status: ConfirmationStatus,
    /// The approver's name.
    pub decided_by: Option<String>,
    /// The approver. `None` before there is one, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<ApproverRecord>,
    /// The changes of the arguments by the approver, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<ArgumentEdit>,
    /// Why it was rejected.
    pub reason: Option<String>,
    /// The caller's roles at the time of the call or of the approval; `None`: those of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
}

impl ConfirmationRecord {
    /// Whether it is about a call of this tool with these arguments, as the caller sent them.
    pub fn is_about(&self, tool: &str, args: &Value) -> bool {
        self.digest == crate::ids::digest(tool, args)
    }

    /// Whether it approves exactly this execution.
    pub(super) fn approves(&self, claim: &Claim) -> bool {
        self.status == ConfirmationStatus::Approved
            && self.session == claim.session
            && *self.execution == *claim.execution
            && *self.tool == *claim.tool
            && *self.tool_version == *claim.tool_version
            && self.digest == claim.digest
    }

    /// Its status at this time, whether or not a sweep has recorded that it expired.
    pub fn status_at(&self, now: i64) -> ConfirmationStatus {
        if self.status == ConfirmationStatus::Pending && self.expires_at <= now {
            return ConfirmationStatus::Expired;
        }
        self.status
    }

    pub(super) fn is_pending_at(&self, now: i64) -> bool {
        self.status_at(now) == ConfirmationStatus::Pending
    }

    /// Pending, or approved and not yet used.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.status, ConfirmationStatus::Pending | ConfirmationStatus::Approved)
    }

    /// The same request with the token of `again`: only the newest token is valid. A request for another call with
    /// the same id does not change the token.
    pub(super) fn with_new_token(&self, again: &Self) -> Self {
        let token_hash = if self.digest == again.digest { again.token_hash } else { self.token_hash };
        Self { token_hash, ..self.clone() }
    }

    pub(super) fn with_decision(&self, decision: Decision) -> Self {
        match decision {
            Decision::Approve { by, args, redacted_args, edits, roles } => Self {
                status: ConfirmationStatus::Approved,
                decided_by: Some(by.id.clone()),
                approver: Some(by),
                edits,
                is_edited: args != self.args,
                args,
                redacted_args,
                roles: roles.or_else(|| self.roles.clone()),
                ..self.clone()
            },
            Decision::Reject { by, reason } => {
                let decided_by = Some(by.id.clone());
                Self {
                    decided_by,
                    approver: Some(by),
                    reason,
                    ..self.without_secrets(ConfirmationStatus::Rejected)
                }
            }
        }
    }

    /// The record without secret arguments.
    pub(super) fn without_secrets(&self, status: ConfirmationStatus) -> Self {
        let mut closed = Self { status, ..self.clone() };
        if let Some(redacted) = closed.redacted_args.take() {
            closed.args = redacted;
        }
        closed
    }
}

/// A page of the pending confirmations, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingQuery<'a> {
    pub scope: PendingScope<'a>,
    /// The time and id of the confirmation before the page.
    pub after: Option<(i64, &'a str)>,
    pub limit: usize,
}

/// Selects pending confirmations by session or principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingScope<'a> {
    All,
    Session(&'a str),
    /// By the key of a principal. In PostgreSQL, confirmations that a server of the version before has stored are
    /// listed for every principal: the caller checks their session.
    Principal(&'a str),
}

impl<'a> PendingQuery<'a> {
    /// All of a scope.
    pub const fn all(scope: PendingScope<'a>) -> Self {
        Self { scope, after: None, limit: usize::MAX }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationStatus {
    Pending,
    Approved,
    Rejected,
    Expired,
    /// Approved, and its execution has been claimed.
    Used,
}

/// An approver's decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// With the arguments to run, which the approver may have edited.
    Approve {
        by: ApproverRecord,
        args: Value,
        /// See [`ConfirmationRecord::redacted_args`].
        redacted_args: Option<Value>,
        /// See [`ConfirmationRecord::edits`].
        edits: Vec<ArgumentEdit>,
        /// The caller's present roles, if they have approved the call themselves.
        roles: Option<Vec<String>>,
    },
    Reject {
        by: ApproverRecord,
        reason: Option<String>,
    },
}

/// The numbers of one minute, as one process has counted them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinuteRecord {
    /// The minute's beginning, in milliseconds since 1970.
    pub at: i64,
    pub process: String,
    /// JSON; see `series`.
    pub content: Arc<str>,
}
