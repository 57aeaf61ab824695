//! A draft becomes an event, once.
//!
//! The event's id follows from the draft's, in the file and on a CalDAV server alike, so that there can never be two.
//! Without a server and without a meeting, everything is one transaction. Otherwise:
//!
//! 1. The time is *held* in the file: for other drafts it is taken, for as long as the call may last.
//! 2. The server is asked again whether the time is free, the meeting is made and noted in the file, the event is put.
//! 3. The event is *booked* in the file.
//!
//! A call that dies in between leaves what it held. The same call again goes on with it; another one, once the time is up,
//! looks first for what was left: an event on the server is booked for the call that put it there, a meeting is
//! removed. What fails without effects gives the time back; what may have had effects keeps it until the time is up.
//!
//! What remains possible: a meeting without an event, if Zoom makes one after the call that asked for it was given up and
//! after whoever took up the draft has looked; and an event beside one that another program puts into the same
//! CalDAV calendar between the second look and ours, which CalDAV cannot prevent.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use toolwright_capabilities::Fault;

use crate::asked::Commit;
use crate::back::Back;
use crate::busy::merged;
use crate::calendar::{Asking, told};
use crate::records::{Event, Progress};
use crate::service::harmless;
use crate::store::{Error, Hold, Holding};

/// How much longer than its call a time is held.
const GRACE: Duration = Duration::from_secs(5);

/// What an earlier call may have done for the event elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    None,
    Unknown,
}

impl Back {
    pub async fn commit(&self, asking: Asking, mut asked: Commit) -> Result<Event, Fault> {
        // Ids of calls mean something in their session only.
        asked.execution_id = format!("{} {}", asking.scope, asked.execution_id);
        let (owner, id) = (asking.owner.clone(), asked.draft_id.clone());
        let looked = self.store.run(move |store| store.look(&owner, &id)).await;
        let (_, progress) = looked.map_err(|error| told(&error))?;
        if !self.has_outside() {
            let hold = self.hold(&asking, asked);
            let held = self.store.run(move |store| store.hold(&hold)).await.map_err(|error| told(&error))?;
            let (Holding::Booked(event) | Holding::Fresh(event) | Holding::Resumed(event)) = held;
            return Ok(event);
        }
        let _at_work = AtWork::begin(self, &asked.draft_id).ok_or_else(|| told(&Error::InProgress))?;
        self.commit_outside(asking, asked, progress).await
    }

    async fn commit_outside(
        &self,
        asking: Asking,
        asked: Commit,
        progress: Option<Progress>,
    ) -> Result<Event, Fault> {
        let execution = asked.execution_id.clone();
        let left = progress.filter(|progress| progress.held_until.is_some());
        if let Some(left) = &left
            && let Some(event) = self.take_up(&asking, &execution, left).await?
        {
            return Ok(event);
        }
        let hold = self.hold(&asking, asked);
        let (mut event, past) = match self.store.run(move |store| store.hold(&hold)).await {
            Ok(Holding::Booked(event)) => return Ok(event),
            Ok(Holding::Fresh(event)) => (event, Past::None),
            Ok(Holding::Resumed(event)) => (event, Past::Unknown),
            Err(error) => {
                // Another draft was quicker while this call was interrupted.
                if let (Error::Taken, Some(left)) = (&error, left.filter(|left| left.execution == execution))
                {
                    self.give_back(&asking, &left.event, Past::Unknown, execution).await?;
                }
                return Err(told(&error));
            }
        };
        match self.complete(&asking, &mut event, past).await {
            Ok(()) => Ok(event),
            // Effects are possible: what is held stays so, for whoever takes it up.
            Err(fault) if fault.code == "TIMEOUT" => Err(fault),
            Err(fault) => {
                self.give_back(&asking, &event, past, execution).await?;
                Err(fault)
            }
        }
    }

    /// Nothing comes of it: its meeting goes, and its time is free again. A meeting without an event would only
    /// mislead; if it cannot be removed, that is told to the operator.
    async fn give_back(
        &self,
        asking: &Asking,
        event: &Event,
        past: Past,
        execution: String,
    ) -> Result<(), Fault> {
        if let Err(fault) = self.clear_away(asking, event, past).await {
            tracing::warn!("a Zoom meeting may have been made in vain for {}: {fault}", event.id);
        }
        let id = event.id.clone();
        let released = self.store.run(move |store| store.release(&id, &execution)).await;
        released.map_err(|error| told(&error))
    }

    /// Whether anything has to be done but in the file.
    fn has_outside(&self) -> bool {
        self.caldav.is_some() || self.zoom.is_some()
    }

    fn hold(&self, asking: &Asking, asked: Commit) -> Hold {
        Hold {
            owner: asking.owner.clone(),
            draft: asked.draft_id,
            slot: asked.slot_index,
            note: asked.note,
            execution: asked.execution_id,
            organizer: self.settings.organizer().to_owned(),
            conference: self.settings.conference.clone(),
            now: asking.now,
            until: self.has_outside().then(|| held_until(asking)),
            blocking: self.blocking(),
        }
    }

    /// Looks after what an earlier call left. The event, if that is all there is to do.
    async fn take_up(
        &self,
        asking: &Asking,
        execution: &str,
        left: &Progress,
    ) -> Result<Option<Event>, Fault> {
        let is_same = left.execution == execution;
        if !is_same && left.held_until.is_some_and(|until| until > asking.now) {
            return Err(told(&Error::InProgress));
        }
        if let Some(caldav) = &self.caldav
            && caldav.find(&left.event, asking.deadline).await?.is_some()
        {
            self.book(&left.event).await?;
            let event = left.event.clone();
            return if is_same { Ok(Some(event)) } else { Err(told(&Error::Used(event.id))) };
        }
        if !is_same {
            self.clear_away(asking, &left.event, Past::Unknown).await?;
        }
        Ok(None)
    }

    /// Removes the meeting of an event that will not be.
    async fn clear_away(&self, asking: &Asking, event: &Event, past: Past) -> Result<(), Fault> {
        let Some(zoom) = &self.zoom else { return Ok(()) };
        let meeting = match (&event.meeting, past) {
            (Some(noted), _) => Some(noted.clone()),
            (None, Past::Unknown) => zoom.find(event, asking.deadline).await?.map(|meeting| meeting.id),
            (None, Past::None) => None,
        };
        match meeting {
            Some(meeting) => zoom.cancel(&meeting, asking.deadline).await.map_err(harmless),
            None => Ok(()),
        }
    }

    /// What has to be done elsewhere for an event that is held.
    async fn complete(&self, asking: &Asking, event: &mut Event, past: Past) -> Result<(), Fault> {
        if let Some(caldav) = &self.caldav {
            let known = caldav.busy(&event.attendees, event.span, asking.deadline).await.map_err(harmless)?;
            if !merged(known.busy.into_values().flatten().collect(), event.span).is_empty() {
                return Err(told(&Error::Taken));
            }
        }
        self.add_meeting(asking, event, past).await?;
        if let Some(caldav) = &self.caldav {
            caldav.put(event, asking.deadline).await?;
        }
        self.book(event).await
    }

    async fn add_meeting(&self, asking: &Asking, event: &mut Event, past: Past) -> Result<(), Fault> {
        let Some(zoom) = self.zoom.as_ref().filter(|_| event.meeting.is_none()) else { return Ok(()) };
        let found = match past {
            Past::Unknown => zoom.find(event, asking.deadline).await?,
            Past::None => None,
        };
        let meeting = match found {
            Some(meeting) => meeting,
            None => zoom.create(event, asking.deadline).await?,
        };
        event.meeting = Some(meeting.id.clone());
        event.conference = Some(meeting.link.clone());
        let id = event.id.clone();
        let noted = self.store.run(move |store| store.note_meeting(&id, &meeting.id, &meeting.link)).await;
        // The meeting exists: whoever takes this up will find it.
        noted.map_err(|error| Fault::new("TIMEOUT", told(&error).message))
    }

    /// The event exists; the file only has to learn it.
    async fn book(&self, event: &Event) -> Result<(), Fault> {
        let id = event.id.clone();
        let booked = self.store.run(move |store| store.book(&id)).await;
        booked.map_err(|error| Fault::new("TIMEOUT", told(&error).message))
    }
}

/// Two calls of one process, even if they have the same id, never work on one draft at a time.
struct AtWork<'a> {
    back: &'a Back,
    draft: String,
}

impl<'a> AtWork<'a> {
    fn begin(back: &'a Back, draft: &str) -> Option<Self> {
        let is_first = back.at_work.lock().unwrap_or_else(PoisonError::into_inner).insert(draft.to_owned());
        is_first.then(|| Self { back, draft: draft.to_owned() })
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.back.at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.draft);
    }
}

fn held_until(asking: &Asking) -> DateTime<Utc> {
    let left = asking.deadline.saturating_duration_since(Instant::now()) + GRACE;
    asking.now + chrono::Duration::from_std(left).unwrap_or_default()
}
