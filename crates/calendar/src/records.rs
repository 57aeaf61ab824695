//! The stored records: drafts, events and reservations.

use chrono::{DateTime, Utc};

use crate::slots::Slot;
use crate::span::Span;

/// The principal that a draft belongs to, whatever the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Empty if there is none.
    pub org: String,
    pub user: String,
}

/// A proposal that can be committed until it expires.
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
    /// The id of the event that the draft becomes. It is derived, so that a draft can become at most one event.
    pub fn event_id(&self) -> String {
        format!("evt_{}", self.id.trim_start_matches("draft_"))
    }
}

/// An event that Toolwright has booked or is booking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub title: String,
    pub attendees: Vec<String>,
    pub span: Span,
    pub timezone: String,
    pub organizer: String,
    pub note: Option<String>,
    /// The conference link.
    pub conference: Option<String>,
    /// The id of the meeting at the conference service.
    pub meeting: Option<String>,
    pub created: DateTime<Utc>,
}

/// The event of a draft, booked or held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub event: Event,
    /// The execution that made it.
    pub execution: String,
    /// How long its call may still run; `None` once the event is booked.
    pub held_until: Option<DateTime<Utc>>,
}
