//! What is kept: drafts and events.

use chrono::{DateTime, Utc};

use crate::busy::Span;
use crate::slots::Slot;

/// Whose draft it is. Sessions come and go; a person stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Empty without one.
    pub org: String,
    pub user: String,
}

/// A plan that lapses by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: String,
    pub owner: Owner,
    pub title: String,
    pub attendees: Vec<String>,
    pub minutes: u32,
    pub timezone: String,
    pub slots: Vec<Slot>,
    pub created: DateTime<Utc>,
    pub expires: DateTime<Utc>,
}

impl Draft {
    /// The id of the event that comes of it. There is one at most, whoever tries and how often.
    pub fn event_id(&self) -> String {
        format!("evt_{}", self.id.trim_start_matches("draft_"))
    }
}

/// An event that Toolwright made, or is making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub title: String,
    pub attendees: Vec<String>,
    pub span: Span,
    pub timezone: String,
    pub organizer: String,
    pub note: Option<String>,
    pub conference: Option<String>,
    /// The id of the meeting at the conference service.
    pub meeting: Option<String>,
    pub created: DateTime<Utc>,
}

/// How far a draft has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub event: Event,
    /// Whose call made it so.
    pub execution: String,
    /// Until when its call may still be at work; `None` once it is booked.
    pub held_until: Option<DateTime<Utc>>,
}
