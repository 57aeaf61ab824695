//! What a store in memory writes down as it goes. A back end that keeps its decisions in memory and its records on disk
//! is a [`Memory`](super::Memory) with a journal.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::oneshot;
use toolwright_contract::Envelope;

use super::chain;
use super::records::{AuditEntry, AuditRow, Claim, Confirmation, Durability, SessionRecord, Standing};
use super::{Error, Result};

/// One change, in the order in which changes were made. Each is on disk as a whole or not at all.
#[derive(Debug)]
pub enum Change {
    /// A session as it is from now on, new or not.
    Session(Arc<SessionRecord>),
    /// A call that runs from now on, and the approval that it has used up. A call keeps its number when it is claimed
    /// anew.
    Claimed {
        number: u64,
        claim: Arc<Claim>,
        used: Option<Arc<Confirmation>>,
    },
    /// What came of a call, in the form that [`Journal::text`] gave it.
    Settled {
        number: u64,
        envelope: String,
        audit: Line,
    },
    /// A question as it is from now on, new or not.
    Confirmation(Arc<Confirmation>),
    Audit(Line),
    /// What need not be kept any more.
    Forgotten(Forgotten),
}

impl Change {
    /// What it is about, without what is in it: that may be somebody's secret.
    pub fn subject(&self) -> String {
        match self {
            Self::Session(record) => format!("session {}", record.id),
            Self::Claimed { claim, .. } => {
                format!("claim of {} in session {}", claim.execution, claim.session)
            }
            Self::Settled { audit, .. } => audit.entry().map_or_else(
                || "a settlement".to_owned(),
                |entry| format!("settlement of {} in session {}", entry.execution_id, entry.session),
            ),
            Self::Confirmation(asked) => format!("confirmation {}", asked.id),
            Self::Audit(line) => line.entry().map_or_else(
                || "an audit entry".to_owned(),
                |entry| format!("audit entry {} of session {}", entry.event, entry.session),
            ),
            Self::Forgotten(_) => "what may be forgotten".to_owned(),
        }
    }
}

/// An entry of the audit as the text that is hashed and kept. Made by whoever writes it, outside of any lock: it goes to
/// the writer as one piece.
#[derive(Debug)]
pub struct Line(pub String);

impl Line {
    pub fn of(entry: &AuditEntry) -> Self {
        Self(chain::text(entry))
    }

    /// The entry again.
    fn entry(&self) -> Option<AuditEntry> {
        serde_json::from_str(&self.0).ok()
    }
}

/// What need not be kept any more: ids of sessions and questions, numbers of executions.
#[derive(Debug, Default)]
pub struct Forgotten {
    pub session: Option<String>,
    pub executions: Vec<u64>,
    pub questions: Vec<String>,
}

impl Forgotten {
    pub const fn is_empty(&self) -> bool {
        self.session.is_none() && self.executions.is_empty() && self.questions.is_empty()
    }
}

/// Where changes go.
pub trait Journal: Send + Sync {
    /// Takes a change. It is called under the lock of what has changed, so that the order is right; it must not block.
    /// What it returns resolves when the change is on disk, or, if that need not be waited for, when there is room for
    /// more.
    fn write(&self, change: Change, durability: Durability) -> Written;

    /// Resolves when everything written before is on disk; an error if anything was lost since this was last asked.
    fn flush(&self) -> Written;

    /// Resolves when everything written before is on disk, or was lost.
    fn caught_up(&self) -> Written;

    /// An envelope in the form in which it is written. Called outside of any lock, since envelopes can be large.
    fn text(&self, envelope: &Envelope) -> Result<String>;

    /// Reads a call back that has left memory: what [`Backend::recorded`](super::Backend::recorded) says of it. Nothing
    /// when the call with this number is another, or not on disk.
    fn call(
        &self,
        number: u64,
        session: &str,
        execution: &str,
    ) -> impl Future<Output = Result<Option<Standing>>> + Send;

    /// Rows of the audit, after the row with this number.
    fn audit(&self, after: u64, limit: usize) -> impl Future<Output = Result<Vec<AuditRow>>> + Send;
}

/// Waits for the disk.
#[derive(Debug)]
#[must_use = "nothing is certain before it was waited for"]
pub struct Written(Option<oneshot::Receiver<Result<()>>>);

impl Written {
    /// Nothing to wait for.
    pub const NOW: Self = Self(None);

    /// Whether there is nothing to wait for.
    pub const fn is_now(&self) -> bool {
        self.0.is_none()
    }

    pub const fn when(receiver: oneshot::Receiver<Result<()>>) -> Self {
        Self(Some(receiver))
    }

    pub async fn wait(self) -> Result<()> {
        match self.0 {
            None => Ok(()),
            Some(receiver) => receiver
                .await
                .unwrap_or_else(|_| Err(Error::Unavailable("its writer has stopped".to_owned()))),
        }
    }
}
