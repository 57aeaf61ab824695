//! A calendar on a CalDAV server (RFC 4791): times are read from it, events are put into it. The name of an event's
//! resource follows from its draft, and it is only ever created, so that no retry makes a second one.

mod multistatus;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use tokio::task::JoinSet;
use toolwright_capabilities::Fault;
use url::Url;

use crate::busy::Span;
use crate::ics::{self, Occurrence};
use crate::records::Event;
use crate::service::{self, Secret};
use crate::settings::Settings;

const NAME: &str = "the calendar server";

/// The calendar at `url`, and those of other people.
#[derive(Debug, Clone)]
pub struct CalDav {
    client: Client,
    /// Ends in a slash.
    url: Url,
    login: Option<(String, Secret)>,
    settings: Arc<Settings>,
}

/// What is known of attendees.
#[derive(Debug, Default)]
pub struct Known {
    /// By address as it was asked for.
    pub busy: BTreeMap<String, Vec<Span>>,
    pub unknown: Vec<String>,
}

impl CalDav {
    pub fn new(client: Client, url: &Url, login: Option<(String, Secret)>, settings: Arc<Settings>) -> Self {
        Self { client, url: directory(url), login, settings }
    }

    /// When these people are taken.
    pub async fn busy(&self, attendees: &[String], window: Span, deadline: Instant) -> Result<Known, Fault> {
        let mut queries = JoinSet::new();
        let shared = self.clone();
        queries.spawn(async move { (None, shared.occurrences(shared.url.clone(), window, deadline).await) });
        for attendee in attendees {
            if let Some(url) = self.own_calendar(attendee) {
                let (dav, attendee) = (self.clone(), attendee.clone());
                queries.spawn(async move { (Some(attendee), dav.occurrences(url, window, deadline).await) });
            }
        }
        let mut known = Known::default();
        known.busy.extend(attendees.iter().map(|attendee| (attendee.clone(), Vec::new())));
        let is_known = |attendee: &&String| {
            self.is_owner(attendee) || self.settings.knows(attendee) || self.own_calendar(attendee).is_some()
        };
        known.unknown = attendees.iter().filter(|attendee| !is_known(attendee)).cloned().collect();
        while let Some(answered) = queries.join_next().await {
            let (whose, found) = answered.map_err(|_| Fault::new("UNREACHABLE", "a query was given up"))?;
            match (whose, found) {
                (None, found) => self.add_shared(&mut known, &found?),
                (Some(attendee), Ok(found)) => add_own(&mut known, &attendee, &found),
                // A calendar that may not be read is a person who is not known.
                (Some(attendee), Err(fault)) if matches!(fault.code, "FORBIDDEN" | "NOT_CONFIGURED") => {
                    tracing::warn!("the calendar of an attendee cannot be read: {}", fault.message);
                    known.unknown.push(attendee);
                }
                (Some(_), Err(fault)) => return Err(fault),
            }
        }
        known.unknown.sort_by_key(|unknown| attendees.iter().position(|attendee| attendee == unknown));
        Ok(known)
    }

    /// In the calendar at `url`, an event takes whoever is named in it; its owner it takes anyhow, and one that names
    /// nobody takes all whose calendar this is.
    fn add_shared(&self, known: &mut Known, found: &[Occurrence]) {
        for (attendee, spans) in &mut known.busy {
            let address = attendee.to_lowercase();
            let is_owner = self.is_owner(attendee);
            let takes = |event: &&Occurrence| {
                let is_named =
                    event.attending.contains(&address) || event.organizer.as_ref() == Some(&address);
                let names_nobody = event.attending.is_empty() && event.declined.is_empty();
                !event.declined.contains(&address)
                    && (is_named || is_owner || names_nobody && self.settings.knows(attendee))
            };
            spans.extend(found.iter().filter(takes).map(|event| event.span));
        }
    }

    fn is_owner(&self, attendee: &str) -> bool {
        attendee.eq_ignore_ascii_case(self.settings.organizer())
    }

    fn own_calendar(&self, attendee: &str) -> Option<Url> {
        let mut all = self.settings.calendars.iter();
        all.find(|(address, _)| address.eq_ignore_ascii_case(attendee)).map(|(_, url)| directory(&url.0))
    }

    async fn occurrences(&self, url: Url, window: Span, deadline: Instant) -> Result<Vec<Occurrence>, Fault> {
        let request = self.request(Method::from_bytes(b"REPORT").map_err(|_| fault_of_method())?, url);
        let request = request
            .header("depth", "1")
            .header("content-type", "application/xml; charset=utf-8")
            .body(multistatus::query(window));
        let (status, body) = service::ask(request, deadline, NAME).await?;
        if status != StatusCode::MULTI_STATUS {
            return Err(refused(status, "UNREACHABLE"));
        }
        let texts = multistatus::calendar_data(&body).map_err(|error| {
            tracing::warn!("the calendar server's answer cannot be read: {error}");
            Fault::new("UNREACHABLE", "the calendar server's answer cannot be read")
        })?;
        let mut found = Vec::new();
        for text in texts {
            match ics::occurrences(&text, window, self.settings.timezone.0) {
                Ok(occurrences) => found.extend(occurrences),
                Err(error) => tracing::warn!("{error}; it is passed over"),
            }
        }
        Ok(found)
    }

    /// Puts an event into the calendar; the same one again changes nothing.
    pub async fn put(&self, event: &Event, deadline: Instant) -> Result<(), Fault> {
        let request = self
            .request(Method::PUT, self.resource(event)?)
            .header("content-type", "text/calendar; charset=utf-8")
            .header("if-none-match", "*")
            .body(ics::write(std::slice::from_ref(event)));
        let (status, _) = service::ask(request, deadline, NAME).await?;
        if status.is_success() {
            return Ok(());
        }
        if status != StatusCode::PRECONDITION_FAILED {
            return Err(refused(status, "TIMEOUT"));
        }
        // It is there; if it cannot be seen which one it is, ours may be.
        let found = self.find(event, deadline).await.map_err(|fault| Fault::new("TIMEOUT", fault.message))?;
        match found {
            Some(start) if start == event.span.start => Ok(()),
            _ => Err(Fault::new("CONFLICT", "the draft has become an event at another time")),
        }
    }

    /// When the event of this draft begins, if it is in the calendar.
    pub async fn find(&self, event: &Event, deadline: Instant) -> Result<Option<DateTime<Utc>>, Fault> {
        let request = self.request(Method::GET, self.resource(event)?);
        let (status, body) = service::ask(request, deadline, NAME).await.map_err(service::harmless)?;
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            StatusCode::OK => {
                let always =
                    Span { start: DateTime::UNIX_EPOCH, end: event.span.end + chrono::Duration::days(3660) };
                let found = ics::occurrences(&body, always, self.settings.timezone.0);
                let first = found.ok().and_then(|found| found.first().map(|event| event.span.start));
                // Somebody may have changed it since; it is there all the same.
                Ok(Some(first.unwrap_or(event.span.start)))
            }
            _ => Err(refused(status, "UNREACHABLE")),
        }
    }

    fn resource(&self, event: &Event) -> Result<Url, Fault> {
        let name = format!("{}.ics", event.id);
        self.url
            .join(&name)
            .map_err(|_| Fault::new("NOT_CONFIGURED", "the calendar's address cannot be used"))
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.login {
            Some((user, password)) => request.basic_auth(user, Some(&password.0)),
            None => request,
        }
    }
}

/// In a calendar of one's own every event takes its owner, unless that person declined.
fn add_own(known: &mut Known, attendee: &str, found: &[Occurrence]) {
    let address = attendee.to_lowercase();
    let taken = found.iter().filter(|event| !event.declined.contains(&address)).map(|event| event.span);
    known.busy.entry(attendee.to_owned()).or_default().extend(taken);
}

/// A collection's address ends in a slash; what is in it is joined to that.
fn directory(url: &Url) -> Url {
    let mut url = url.clone();
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url
}

fn fault_of_method() -> Fault {
    Fault::new("NOT_CONFIGURED", "the calendar server cannot be asked")
}

/// A refusal has no effects; what the server fails at may have some, which `on_failure` says.
fn refused(status: StatusCode, on_failure: &'static str) -> Fault {
    let (code, message) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ("FORBIDDEN", "the calendar server does not accept the server's credentials")
        }
        StatusCode::TOO_MANY_REQUESTS => ("RATE_LIMIT", "the calendar server asks for a pause"),
        StatusCode::SERVICE_UNAVAILABLE => ("UNREACHABLE", "the calendar server is not available"),
        _ if status.is_server_error() => (on_failure, "the calendar server has failed"),
        _ => ("NOT_CONFIGURED", "there is no calendar at the address that is configured"),
    };
    tracing::warn!("the calendar server answered {status}");
    Fault::new(code, message)
}
