//! What is behind the door: who is taken when, and proposals.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Duration, Utc};
use serde_json::Value;
use toolwright_capabilities::Fault;

use crate::answer;
use crate::asked::{FreeBusy, Propose};
use crate::busy::{Span, merged};
use crate::caldav::{CalDav, Known};
use crate::calendar::{Asking, told};
use crate::records::Draft;
use crate::settings::Settings;
use crate::slots::{self, Wish};
use crate::store::{Blocking, Error, Store};
use crate::zoom::Zoom;

/// The back ends in use.
#[derive(Debug)]
pub struct Back {
    pub settings: Arc<Settings>,
    pub store: Store,
    pub caldav: Option<CalDav>,
    pub zoom: Option<Zoom>,
    /// Drafts for which a call of this process is at work elsewhere.
    pub at_work: Mutex<HashSet<String>>,
}

impl Back {
    /// Which events of the file block a time: on a server others may have moved or removed what was booked.
    pub fn blocking(&self) -> Blocking {
        if self.caldav.is_some() { Blocking::Held } else { Blocking::All }
    }

    /// When these people are taken, and of whom that is not known.
    pub async fn known(&self, attendees: &[String], window: Span, asking: &Asking) -> Result<Known, Fault> {
        let mut known = match &self.caldav {
            Some(caldav) => caldav.busy(attendees, window, asking.deadline).await?,
            None => {
                let is_unknown = |attendee: &&String| !self.settings.knows(attendee);
                let unknown = attendees.iter().filter(is_unknown).cloned().collect();
                Known { busy: BTreeMap::new(), unknown }
            }
        };
        let (asked, which, now) = (attendees.to_vec(), self.blocking(), asking.now);
        let read = move |store: &Store| {
            let each = asked.into_iter().map(|address| {
                let busy = store.busy(&address, window, which, now)?;
                Ok((address, busy))
            });
            each.collect::<Result<Vec<_>, Error>>()
        };
        for (address, spans) in self.store.run(read).await.map_err(|error| told(&error))? {
            known.busy.entry(address).or_default().extend(spans);
        }
        Ok(known)
    }

    pub async fn free_busy(&self, asking: &Asking, asked: &FreeBusy) -> Result<Value, Fault> {
        let window = asked.window()?;
        let known = self.known(&asked.attendees, window, asking).await?;
        let busy = known.busy.into_iter().map(|(address, spans)| (address, merged(spans, window)));
        Ok(answer::free_busy(&busy.collect(), &known.unknown))
    }

    pub async fn propose(&self, asking: Asking, asked: Propose) -> Result<Value, Fault> {
        let (window, zone) = asked.check(asking.now)?;
        if window.end <= window.start {
            return Ok(answer::proposal(None, &[]));
        }
        let known = self.known(&asked.attendees, window, &asking).await?;
        let busy = merged(known.busy.into_values().flatten().collect(), window);
        let length = Duration::minutes(asked.duration_minutes.into());
        let wish = Wish { length, preferred: &asked.preferred_times, window, zone };
        let slots = slots::find(&wish, &busy, &self.settings);
        if slots.is_empty() {
            return Ok(answer::proposal(None, &known.unknown));
        }
        let draft = Draft {
            id: draft_id()?,
            owner: asking.owner,
            title: asked.title,
            attendees: asked.attendees,
            minutes: asked.duration_minutes,
            timezone: asked.timezone,
            slots,
            created: asking.now,
            expires: self.expiry(asking.now),
        };
        let answer = answer::proposal(Some(&draft), &known.unknown);
        self.store.run(move |store| store.keep(&draft)).await.map_err(|error| told(&error))?;
        Ok(answer)
    }

    fn expiry(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + Duration::seconds(self.settings.draft_expires_after_s.into())
    }
}

/// A hundred bits: the id of the event follows from it, and may be all that a link to its conference hides.
fn draft_id() -> Result<String, Fault> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes)
        .map_err(|_| Fault::new("UNREACHABLE", "the system gives no random numbers"))?;
    let letters = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
    Ok(format!("draft_{}", letters.collect::<String>()))
}
