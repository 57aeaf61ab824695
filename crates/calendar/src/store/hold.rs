//! Holds or books a time. Everything is checked in the same transaction.

use chrono::{DateTime, Utc};
use rusqlite::Transaction;

use super::{BlockingEvents, Error, Result, rows};
use crate::arguments::CommitArgs;
use crate::records::{Draft, Event, Owner, Reservation};

/// A request to turn one slot of a draft into an event.
#[derive(Debug, Clone)]
pub struct HoldRequest {
    pub owner: Owner,
    pub args: CommitArgs,
    pub organizer: String,
    /// The template of the conference link, with `{event_id}`.
    pub conference: Option<String>,
    pub now: DateTime<Utc>,
    /// How long the call may use remote services. Without it, the event is booked at once.
    pub until: Option<DateTime<Utc>>,
    pub blocking_events: BlockingEvents,
}

/// The event of a successful request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOutcome {
    /// Booked earlier by the same call.
    Booked(Event),
    /// Held, or booked if the request has no `until`.
    New(Event),
    /// Held by the same call before it was interrupted. Its remote side effects are unknown.
    Resumed(Event),
}

impl HoldRequest {
    pub(super) fn execute(&self, transaction: &Transaction<'_>) -> Result<HoldOutcome> {
        let draft = rows::draft(transaction, &self.owner, &self.args.draft_id)?;
        let Some(earlier) = rows::reservation(transaction, &self.args.draft_id)? else {
            return self.hold_new(transaction, &draft);
        };
        let is_same = earlier.execution == self.args.execution_id;
        match earlier.held_until {
            None if is_same => Ok(HoldOutcome::Booked(earlier.event)),
            None => Err(Error::Used(earlier.event.id)),
            Some(_) if is_same => self.resume(transaction, earlier.event),
            Some(until) if until > self.now => Err(Error::InProgress),
            Some(_) => {
                // The hold has expired, and the caller has already cleaned up its remote side effects.
                transaction.execute("DELETE FROM events WHERE id = ?1", [&earlier.event.id])?;
                self.hold_new(transaction, &draft)
            }
        }
    }

    fn hold_new(&self, transaction: &Transaction<'_>, draft: &Draft) -> Result<HoldOutcome> {
        if draft.expires <= self.now {
            return Err(Error::Expired);
        }
        let slot = draft.slots.get(self.args.slot_index).ok_or(Error::NoSuchSlot(draft.slots.len()))?;
        if slot.span.start < self.now {
            return Err(Error::Expired);
        }
        let id = draft.event_id();
        let event = Event {
            title: draft.title.clone(),
            attendees: draft.attendees.clone(),
            span: slot.span,
            timezone: draft.timezone.clone(),
            organizer: self.organizer.clone(),
            note: self.args.note.clone(),
            conference: self.conference.as_ref().map(|template| template.replace("{event_id}", &id)),
            meeting: None,
            created: self.now,
            id,
        };
        self.check_free(transaction, &event)?;
        let reservation =
            Reservation { event, execution: self.args.execution_id.clone(), held_until: self.until };
        rows::insert_event(transaction, &self.args.draft_id, &reservation)?;
        Ok(HoldOutcome::New(reservation.event))
    }

    fn resume(&self, transaction: &Transaction<'_>, event: Event) -> Result<HoldOutcome> {
        self.check_free(transaction, &event)?;
        let sql = "UPDATE events SET held_until = ?2 WHERE id = ?1";
        transaction.execute(sql, (&event.id, self.until.map(|until| until.timestamp_millis())))?;
        Ok(HoldOutcome::Resumed(event))
    }

    fn check_free(&self, transaction: &Transaction<'_>, event: &Event) -> Result<()> {
        for attendee in &event.attendees {
            let busy =
                rows::busy(transaction, attendee, event.span, self.blocking_events, self.now, &event.id)?;
            if !busy.is_empty() {
                return Err(Error::Taken);
            }
        }
        Ok(())
    }
}
