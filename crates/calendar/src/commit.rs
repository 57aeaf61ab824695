//! `calendar.commit`: turns a draft into an event, at most once.
//!
//! The event's id is derived from the draft's, in the file and on a CalDAV server alike, so there can never be two.
//! Without CalDAV and Zoom, one transaction does everything. Otherwise:
//!
//! 1. The time is *held* in the file: it blocks other drafts for as long as the call may run.
//! 2. The CalDAV server is asked again whether the time is free, the meeting is created and recorded in the file, the
//!    event is put on the server.
//! 3. The event is *booked* in the file.
//!
//! A call that dies in between leaves its hold. The same call again continues with it. Another call waits until the
//! hold has expired and then looks for what the first one did: an event on the server is booked for the call that put
//! it there, a meeting is cancelled. An error without side effects releases the hold; one with possible side effects
//! keeps it until it expires.
//!
//! Still possible: a meeting without an event, if Zoom creates it after another call has already looked for it; and
//! two events at one time, if another program puts one into the same CalDAV calendar between our query and our PUT.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use toolwright_capabilities::{CapabilityError, Result};

use crate::arguments::CommitArgs;
use crate::backend::CalendarBackend;
use crate::calendar::CallContext;
use crate::records::{Event, Reservation};
use crate::remote_service::without_effects;
use crate::span::merge_spans;
use crate::store::{Error, HoldOutcome, HoldRequest};

/// How much longer than its call a hold lasts.
const HOLD_GRACE: Duration = Duration::from_secs(5);

/// Whether an earlier call may have created a meeting for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EarlierMeeting {
    Impossible,
    Possible,
}

impl CalendarBackend {
    pub async fn commit(&self, context: CallContext, mut args: CommitArgs) -> Result<Event> {
        // Execution ids are unique within their session only.
        args.execution_id = format!("{} {}", context.scope, args.execution_id);
        let (_, reservation) = self.find_draft(context.owner.clone(), args.draft_id.clone()).await?;
        if !self.has_remote_service() {
            let hold = self.hold_request(&context, args);
            let outcome = self.store.run(move |store| store.hold(&hold)).await?;
            let (HoldOutcome::Booked(event) | HoldOutcome::New(event) | HoldOutcome::Resumed(event)) =
                outcome;
            return Ok(event);
        }
        let _active = ActiveDraft::begin(self, &args.draft_id).ok_or(Error::InProgress)?;
        self.commit_remotely(context, args, reservation).await
    }

    async fn commit_remotely(
        &self,
        context: CallContext,
        args: CommitArgs,
        reservation: Option<Reservation>,
    ) -> Result<Event> {
        let execution = args.execution_id.clone();
        let reserved = reservation.filter(|reservation| reservation.held_until.is_some());
        if let Some(reserved) = &reserved
            && let Some(event) = self.resume(&context, &execution, reserved).await?
        {
            return Ok(event);
        }
        let hold = self.hold_request(&context, args);
        let (mut event, earlier) = match self.store.run(move |store| store.hold(&hold)).await {
            Ok(HoldOutcome::Booked(event)) => return Ok(event),
            Ok(HoldOutcome::New(event)) => (event, EarlierMeeting::Impossible),
            Ok(HoldOutcome::Resumed(event)) => (event, EarlierMeeting::Possible),
            Err(error) => {
                // Another draft took the time while this call was interrupted.
                if let (Error::Taken, Some(reserved)) =
                    (&error, reserved.filter(|reserved| reserved.execution == execution))
                {
                    self.abandon(&context, &reserved.event, EarlierMeeting::Possible, execution).await?;
                }
                return Err(error.into());
            }
        };
        match self.complete(&context, &mut event, earlier).await {
            Ok(()) => Ok(event),
            // Side effects are possible: the hold remains for the next call.
            Err(error) if error.code == "TIMEOUT" => Err(error),
            Err(error) => {
                self.abandon(&context, &event, earlier, execution).await?;
                Err(error)
            }
        }
    }

    /// Cancels the meeting and releases the time of an event that will not be booked.
    async fn abandon(
        &self,
        context: &CallContext,
        event: &Event,
        earlier: EarlierMeeting,
        execution: String,
    ) -> Result<()> {
        if let Err(error) = self.cancel_meeting(context, event, earlier).await {
            tracing::warn!("a Zoom meeting of {} may be left over without an event: {error}", event.id);
        }
        let id = event.id.clone();
        Ok(self.store.run(move |store| store.release(&id, &execution)).await?)
    }

    fn has_remote_service(&self) -> bool {
        self.caldav.is_some() || self.zoom.is_some()
    }

    fn hold_request(&self, context: &CallContext, args: CommitArgs) -> HoldRequest {
        HoldRequest {
            owner: context.owner.clone(),
            args,
            organizer: self.settings.organizer().to_owned(),
            conference: self.settings.conference.clone(),
            now: context.now,
            until: self.has_remote_service().then(|| held_until(context)),
            blocking_events: self.blocking_events(),
        }
    }

    /// Handles the hold of an earlier call. Returns the event if there is nothing left to do.
    async fn resume(
        &self,
        context: &CallContext,
        execution: &str,
        held: &Reservation,
    ) -> Result<Option<Event>> {
        let is_same = held.execution == execution;
        if !is_same && held.held_until.is_some_and(|until| until > context.now) {
            return Err(Error::InProgress.into());
        }
        if let Some(caldav) = &self.caldav
            && caldav.find_start(&held.event, context.deadline).await?.is_some()
        {
            self.book(&held.event).await?;
            let event = held.event.clone();
            return if is_same { Ok(Some(event)) } else { Err(Error::Used(event.id).into()) };
        }
        if !is_same {
            self.cancel_meeting(context, &held.event, EarlierMeeting::Possible).await?;
        }
        Ok(None)
    }

    /// Cancels the meeting of an event that will not be booked. One without an event would mislead its attendees.
    async fn cancel_meeting(
        &self,
        context: &CallContext,
        event: &Event,
        earlier: EarlierMeeting,
    ) -> Result<()> {
        let Some(zoom) = &self.zoom else { return Ok(()) };
        let meeting = match (&event.meeting, earlier) {
            (Some(recorded), _) => Some(recorded.clone()),
            (None, EarlierMeeting::Possible) => {
                zoom.find(event, context.deadline).await?.map(|meeting| meeting.id)
            }
            (None, EarlierMeeting::Impossible) => None,
        };
        match meeting {
            Some(meeting) => zoom.cancel(&meeting, context.deadline).await.map_err(without_effects),
            None => Ok(()),
        }
    }

    /// Creates a held event at the remote services and books it.
    async fn complete(
        &self,
        context: &CallContext,
        event: &mut Event,
        earlier: EarlierMeeting,
    ) -> Result<()> {
        if let Some(caldav) = &self.caldav {
            let queried = caldav.availability(&event.attendees, event.span, context.deadline).await;
            let busy = queried.map_err(without_effects)?.busy.into_values().flatten().collect();
            if !merge_spans(busy, event.span).is_empty() {
                return Err(Error::Taken.into());
            }
        }
        self.add_meeting(context, event, earlier).await?;
        if let Some(caldav) = &self.caldav {
            caldav.put(event, context.deadline).await?;
        }
        self.book(event).await
    }

    async fn add_meeting(
        &self,
        context: &CallContext,
        event: &mut Event,
        earlier: EarlierMeeting,
    ) -> Result<()> {
        let Some(zoom) = self.zoom.as_ref().filter(|_| event.meeting.is_none()) else { return Ok(()) };
        let found = match earlier {
            EarlierMeeting::Possible => zoom.find(event, context.deadline).await?,
            EarlierMeeting::Impossible => None,
        };
        let meeting = match found {
            Some(meeting) => meeting,
            None => zoom.create(event, context.deadline).await?,
        };
        event.meeting = Some(meeting.id.clone());
        event.conference = Some(meeting.link.clone());
        let id = event.id.clone();
        let recorded =
            self.store.run(move |store| store.record_meeting(&id, &meeting.id, &meeting.link)).await;
        recorded.map_err(with_effects)
    }

    /// Records that the event exists.
    async fn book(&self, event: &Event) -> Result<()> {
        let id = event.id.clone();
        self.store.run(move |store| store.book(&id)).await.map_err(with_effects)
    }
}

/// An error of the store after a remote service has done its part.
fn with_effects(error: Error) -> CapabilityError {
    CapabilityError::timeout(CapabilityError::from(error).message)
}

/// Ensures that two calls of one process, even with the same id, never commit one draft at the same time.
struct ActiveDraft<'a> {
    backend: &'a CalendarBackend,
    draft: String,
}

impl<'a> ActiveDraft<'a> {
    fn begin(backend: &'a CalendarBackend, draft: &str) -> Option<Self> {
        let mut active = backend.active_drafts.lock().unwrap_or_else(PoisonError::into_inner);
        active.insert(draft.to_owned()).then(|| Self { backend, draft: draft.to_owned() })
    }
}

impl Drop for ActiveDraft<'_> {
    fn drop(&mut self) {
        self.backend.active_drafts.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.draft);
    }
}

fn held_until(context: &CallContext) -> DateTime<Utc> {
    let left = context.deadline.saturating_duration_since(Instant::now()) + HOLD_GRACE;
    context.now + chrono::Duration::from_std(left).unwrap_or_default()
}
