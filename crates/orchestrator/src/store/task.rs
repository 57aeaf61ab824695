//! Tasks: calls that run in the background. A task is stored before its call is answered, belongs to the process that
//! runs it, and is adopted by another when its owner is gone. Its execution has the task's id, so that the rules of
//! claims decide whether it may run (again).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_contract::{Envelope, Principal};

use super::records::Durability;

/// A call that runs in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Also the id of the execution that runs it.
    pub id: String,
    pub session: String,
    /// The execution id of the call that began it.
    pub call: String,
    /// The caller, with the roles at the time of the call.
    pub principal: Principal,
    pub tool: String,
    pub tool_version: String,
    /// The arguments as they run: validated, defaults filled in, clamped.
    pub args: Value,
    /// Replaces the arguments once the task has ended, if some of them are secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted_args: Option<Value>,
    pub status: TaskStatus,
    /// From 0 to 1, as the handler has reported it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default)]
    pub is_cancel_requested: bool,
    /// The end of a task whose execution has recorded none: it was refused, or cancelled before it ran, or is in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<Arc<Envelope>>,
    pub created_at: i64,
    pub updated_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Incremented by every change.
    pub revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It waits until its process has room, or for the store.
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    /// Its process has died while it ran, and it must not run again.
    InDoubt,
}

impl TaskStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::InDoubt => "in_doubt",
        }
    }

    pub const fn is_end(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A change of a task that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskChange {
    /// It begins to run, or waits again.
    Begin(TaskStatus),
    Progress {
        progress: f64,
        message: Option<String>,
    },
    RequestCancel,
    End {
        status: TaskStatus,
        /// See [`TaskRecord::unrecorded`].
        unrecorded: Option<Arc<Envelope>>,
    },
}

impl TaskChange {
    /// Whether only the owner of the task may make it.
    pub(super) const fn is_of_owner(&self) -> bool {
        !matches!(self, Self::RequestCancel)
    }

    /// Progress may be lost: the task goes on.
    pub(super) const fn durability(&self) -> Durability {
        match self {
            Self::Begin(_) | Self::Progress { .. } => Durability::Relaxed,
            Self::RequestCancel | Self::End { .. } => Durability::Committed,
        }
    }
}

/// A page of the tasks, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskQuery<'a> {
    pub scope: TaskScope<'a>,
    /// Creation time and id of the task before the page.
    pub before: Option<(i64, &'a str)>,
    pub limit: usize,
}

/// Selects tasks by session or principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskScope<'a> {
    All,
    Session(&'a str),
    /// By the key of a principal.
    Principal(&'a str),
}

impl TaskRecord {
    pub fn has_ended(&self) -> bool {
        self.status.is_end()
    }

    /// The arguments for people: without secrets.
    pub fn shown_args(&self) -> &Value {
        self.redacted_args.as_ref().unwrap_or(&self.args)
    }

    /// The record after a change; `None` once it has ended.
    pub(super) fn after_change(&self, change: TaskChange, now: i64) -> Option<Self> {
        if self.has_ended() {
            return None;
        }
        let mut changed = Self { updated_at: now, revision: self.revision + 1, ..self.clone() };
        match change {
            TaskChange::Begin(status) => changed.status = status,
            TaskChange::Progress { progress, message } => {
                (changed.progress, changed.message) = (Some(progress), message);
            }
            TaskChange::RequestCancel => changed.is_cancel_requested = true,
            TaskChange::End { status, unrecorded } => {
                (changed.status, changed.unrecorded, changed.ended_at) = (status, unrecorded, Some(now));
                if let Some(redacted) = changed.redacted_args.take() {
                    changed.args = redacted;
                }
            }
        }
        Some(changed)
    }
}
