//! Free and busy times, proposals, and what all functions share: the store and the clients of remote services.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use chrono::Duration;
use serde_json::Value;
use toolwright_capabilities::{CapabilityError, Result};
use url::Url;

use crate::arguments::{FreeBusyArgs, ProposeArgs};
use crate::caldav::{Availability, CalDavClient};
use crate::calendar::CallContext;
use crate::output;
use crate::records::{Draft, Owner, Reservation};
use crate::settings::Settings;
use crate::slots::{self, SlotSearch};
use crate::span::{Span, merge_spans};
use crate::store::{BlockingEvents, Error, Store};
use crate::zoom_client::ZoomClient;

/// The opened store and clients.
#[derive(Debug)]
pub struct CalendarBackend {
    pub settings: Arc<Settings>,
    pub store: Store,
    pub caldav: Option<CalDavClient>,
    pub zoom: Option<ZoomClient>,
    /// Drafts that a call of this process is committing at a remote service.
    pub active_drafts: Mutex<HashSet<String>>,
}

impl CalendarBackend {
    /// With CalDAV, booked events of the file do not block a time: others may have moved or deleted them on the server.
    pub fn blocking_events(&self) -> BlockingEvents {
        if self.caldav.is_some() { BlockingEvents::HeldOnly } else { BlockingEvents::All }
    }

    /// Where events take place: at the conference service, if there is one.
    pub fn place(&self) -> Option<String> {
        let of_template = |template: &String| {
            let url = Url::parse(&template.replace("{event_id}", "x")).ok()?;
            url.host_str().map(|host| format!("a conference link at {host}"))
        };
        let zoom = self.zoom.as_ref().map(|_| "a Zoom meeting".to_owned());
        zoom.or_else(|| self.settings.conference.as_ref().and_then(of_template))
    }

    pub async fn find_draft(&self, owner: Owner, id: String) -> Result<(Draft, Option<Reservation>)> {
        Ok(self.store.run(move |store| store.find_draft(&owner, &id)).await?)
    }

    /// The busy times of these people, and the people whose times are unknown.
    async fn availability(
        &self,
        attendees: &[String],
        window: Span,
        context: &CallContext,
    ) -> Result<Availability> {
        let mut availability = match &self.caldav {
            Some(caldav) => caldav.availability(attendees, window, context.deadline).await?,
            None => {
                let is_unknown = |attendee: &&String| !self.settings.includes_person(attendee);
                let unknown = attendees.iter().filter(is_unknown).cloned().collect();
                Availability { busy: BTreeMap::new(), unknown }
            }
        };
        let (attendees, events, now) = (attendees.to_vec(), self.blocking_events(), context.now);
        let read = move |store: &Store| {
            let each = attendees.into_iter().map(|address| {
                let busy = store.busy(&address, window, events, now)?;
                Ok((address, busy))
            });
            each.collect::<Result<Vec<_>, Error>>()
        };
        for (address, spans) in self.store.run(read).await? {
            availability.busy.entry(address).or_default().extend(spans);
        }
        Ok(availability)
    }

    pub async fn free_busy(&self, context: &CallContext, args: &FreeBusyArgs) -> Result<Value> {
        let window = args.check()?;
        let availability = self.availability(&args.attendees, window, context).await?;
        let merged =
            availability.busy.into_iter().map(|(address, spans)| (address, merge_spans(spans, window)));
        Ok(output::free_busy(&merged.collect(), &availability.unknown))
    }

    pub async fn propose(&self, context: CallContext, args: ProposeArgs) -> Result<Value> {
        let (window, zone) = args.check(context.now)?;
        if window.end <= window.start {
            return Ok(output::proposal(None, &[]));
        }
        let availability = self.availability(&args.attendees, window, &context).await?;
        let busy = merge_spans(availability.busy.into_values().flatten().collect(), window);
        let length = Duration::minutes(args.duration_minutes.into());
        let preferred: Vec<_> = args.preferred_times.iter().map(|time| time.0).collect();
        let search = SlotSearch { length, preferred: &preferred, window, zone };
        let slots = slots::find_slots(&search, &busy, &self.settings);
        if slots.is_empty() {
            return Ok(output::proposal(None, &availability.unknown));
        }
        let draft = Draft {
            id: new_draft_id()?,
            owner: context.owner,
            title: args.title,
            attendees: args.attendees,
            minutes: args.duration_minutes,
            timezone: args.timezone,
            slots,
            created: context.now,
            expires: context.now + Duration::seconds(self.settings.draft_expires_after_s.into()),
        };
        let proposal = output::proposal(Some(&draft), &availability.unknown);
        self.store.run(move |store| store.insert_draft(&draft)).await?;
        Ok(proposal)
    }
}

/// 100 random bits. The event id is derived from it and may be the only secret of a conference link.
fn new_draft_id() -> Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes)
        .map_err(|_| CapabilityError::unreachable("the system has no random numbers"))?;
    let letters = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
    Ok(format!("draft_{}", letters.collect::<String>()))
}
