//! The one step that takes a time. All that must hold is checked here, in the transaction that takes it.

use chrono::{DateTime, Utc};
use rusqlite::Transaction;

use super::{Blocking, Error, Result, rows};
use crate::records::{Draft, Event, Owner, Progress};

/// What a call wants to make of a draft.
#[derive(Debug, Clone)]
pub struct Hold {
    pub owner: Owner,
    pub draft: String,
    pub slot: usize,
    pub note: Option<String>,
    pub execution: String,
    pub organizer: String,
    /// A link that can be known beforehand, with `{event_id}`.
    pub conference: Option<String>,
    pub now: DateTime<Utc>,
    /// Until when the call may be at work elsewhere. Without it the event is booked in this very step.
    pub until: Option<DateTime<Utc>>,
    pub blocking: Blocking,
}

/// What the call has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// Booked before, by the same call.
    Booked(Event),
    /// Taken by this step; booked already if nothing else has to be done.
    Fresh(Event),
    /// Taken by the same call before it was interrupted: what it did elsewhere is not known.
    Resumed(Event),
}

impl Hold {
    pub(super) fn take(&self, transaction: &Transaction<'_>) -> Result<Holding> {
        let draft = rows::draft(transaction, &self.owner, &self.draft)?;
        let Some(before) = rows::progress(transaction, &self.draft)? else {
            return self.fresh(transaction, &draft);
        };
        let is_same = before.execution == self.execution;
        match before.held_until {
            None if is_same => Ok(Holding::Booked(before.event)),
            None => Err(Error::Used(before.event.id)),
            Some(_) if is_same => self.resumed(transaction, before.event),
            Some(until) if until > self.now => Err(Error::InProgress),
            Some(_) => {
                // Whoever held it is gone, and what it left elsewhere was looked after before this step.
                transaction.execute("DELETE FROM events WHERE id = ?1", [&before.event.id])?;
                self.fresh(transaction, &draft)
            }
        }
    }

    fn fresh(&self, transaction: &Transaction<'_>, draft: &Draft) -> Result<Holding> {
        if draft.expires <= self.now {
            return Err(Error::Expired);
        }
        let slot = draft.slots.get(self.slot).ok_or(Error::NoSuchSlot(draft.slots.len()))?;
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
            note: self.note.clone(),
            conference: self.conference.as_ref().map(|template| template.replace("{event_id}", &id)),
            meeting: None,
            created: self.now,
            id,
        };
        self.check_free(transaction, &event)?;
        let progress = Progress { event, execution: self.execution.clone(), held_until: self.until };
        rows::insert_event(transaction, &self.draft, &progress)?;
        Ok(Holding::Fresh(progress.event))
    }

    fn resumed(&self, transaction: &Transaction<'_>, event: Event) -> Result<Holding> {
        self.check_free(transaction, &event)?;
        let sql = "UPDATE events SET held_until = ?2 WHERE id = ?1";
        transaction.execute(sql, (&event.id, self.until.map(|until| until.timestamp_millis())))?;
        Ok(Holding::Resumed(event))
    }

    fn check_free(&self, transaction: &Transaction<'_>, event: &Event) -> Result<()> {
        for attendee in &event.attendees {
            let busy = rows::busy(transaction, attendee, event.span, self.blocking, self.now, &event.id)?;
            if !busy.is_empty() {
                return Err(Error::Taken);
            }
        }
        Ok(())
    }
}
