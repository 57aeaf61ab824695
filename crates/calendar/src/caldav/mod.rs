//! The client of a CalDAV server (RFC 4791): queries busy times and creates events. The resource name of an event is
//! derived from its draft, and PUT only ever creates, so that no retry makes a second event.

mod caldav_xml;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use tokio::task::JoinSet;
use toolwright_capabilities::{CapabilityError, Result, Secret};
use url::Url;

use crate::ics::{self, Occurrence};
use crate::records::Event;
use crate::remote_service::{send_request, without_effects};
use crate::settings::Settings;
use crate::span::Span;

const NAME: &str = "the CalDAV server";

/// The configured calendar at `url`, and those of other people.
#[derive(Debug, Clone)]
pub struct CalDavClient {
    client: Client,
    /// Ends with a slash.
    url: Url,
    login: Option<(String, Secret)>,
    settings: Arc<Settings>,
}

/// The busy times of attendees.
#[derive(Debug, Default)]
pub struct Availability {
    /// By address, as written in the request.
    pub busy: BTreeMap<String, Vec<Span>>,
    /// Attendees whose calendar cannot be read.
    pub unknown: Vec<String>,
}

impl CalDavClient {
    pub fn new(client: Client, url: &Url, login: Option<(String, Secret)>, settings: Arc<Settings>) -> Self {
        Self { client, url: collection_url(url), login, settings }
    }

    /// Queries the busy times of these people, all calendars at once.
    pub async fn availability(
        &self,
        attendees: &[String],
        window: Span,
        deadline: Instant,
    ) -> Result<Availability> {
        let mut queries = JoinSet::new();
        let shared = self.clone();
        queries.spawn(async move { (None, shared.occurrences(shared.url.clone(), window, deadline).await) });
        for attendee in attendees {
            if let Some(url) = self.calendar_of(attendee) {
                let (dav, attendee) = (self.clone(), attendee.clone());
                queries.spawn(async move { (Some(attendee), dav.occurrences(url, window, deadline).await) });
            }
        }
        let mut availability = Availability::default();
        availability.busy.extend(attendees.iter().map(|attendee| (attendee.clone(), Vec::new())));
        let is_known = |attendee: &&String| {
            self.is_owner(attendee)
                || self.settings.includes_person(attendee)
                || self.calendar_of(attendee).is_some()
        };
        availability.unknown = attendees.iter().filter(|attendee| !is_known(attendee)).cloned().collect();
        while let Some(joined) = queries.join_next().await {
            let (owner, found) =
                joined.map_err(|_| CapabilityError::unreachable("a calendar query was aborted"))?;
            match (owner, found) {
                (None, found) => self.add_shared(&mut availability, &found?),
                (Some(attendee), Ok(found)) => add_own(&mut availability, &attendee, &found),
                // The times of a person whose calendar may not be read are unknown.
                (Some(attendee), Err(error)) if matches!(error.code, "FORBIDDEN" | "NOT_CONFIGURED") => {
                    tracing::warn!("could not read the calendar of an attendee: {}", error.message);
                    availability.unknown.push(attendee);
                }
                (Some(_), Err(error)) => return Err(error),
            }
        }
        availability.unknown.sort_by_key(|unknown| attendees.iter().position(|attendee| attendee == unknown));
        Ok(availability)
    }

    /// An event in the calendar at `url` makes its attendees, its organizer and the calendar's owner busy. One without
    /// attendees makes all configured `people` busy.
    fn add_shared(&self, availability: &mut Availability, found: &[Occurrence]) {
        for (attendee, spans) in &mut availability.busy {
            let address = attendee.to_lowercase();
            let is_owner = self.is_owner(attendee);
            let is_busy = |event: &&Occurrence| {
                let is_named =
                    event.attending.contains(&address) || event.organizer.as_ref() == Some(&address);
                let has_no_attendees = event.attending.is_empty() && event.declined.is_empty();
                !event.declined.contains(&address)
                    && (is_named || is_owner || has_no_attendees && self.settings.includes_person(attendee))
            };
            spans.extend(found.iter().filter(is_busy).map(|event| event.span));
        }
    }

    fn is_owner(&self, attendee: &str) -> bool {
        attendee.eq_ignore_ascii_case(self.settings.organizer())
    }

    fn calendar_of(&self, attendee: &str) -> Option<Url> {
        let mut all = self.settings.calendars.iter();
        all.find(|(address, _)| address.eq_ignore_ascii_case(attendee)).map(|(_, url)| collection_url(&url.0))
    }

    async fn occurrences(&self, url: Url, window: Span, deadline: Instant) -> Result<Vec<Occurrence>> {
        let report = Method::from_bytes(b"REPORT")
            .map_err(|error| CapabilityError::not_configured(error.to_string()))?;
        let request = self
            .request(report, url)
            .header("depth", "1")
            .header("content-type", "application/xml; charset=utf-8")
            .body(caldav_xml::calendar_query(window));
        let (status, body) = send_request(request, deadline, NAME).await?;
        if status != StatusCode::MULTI_STATUS {
            return Err(status_error(status, "UNREACHABLE"));
        }
        let texts = caldav_xml::calendar_data(&body).map_err(|error| {
            tracing::warn!("the response of the CalDAV server is not valid XML: {error}");
            CapabilityError::unreachable("the response of the CalDAV server is invalid")
        })?;
        let mut found = Vec::new();
        for text in texts {
            match ics::occurrences(&text, window, self.settings.timezone.0) {
                Ok(occurrences) => found.extend(occurrences),
                Err(error) => tracing::warn!("skipped a calendar entry: {error}"),
            }
        }
        Ok(found)
    }

    /// Creates the event in the calendar. Creating the same event again has no effect.
    pub async fn put(&self, event: &Event, deadline: Instant) -> Result<()> {
        let request = self
            .request(Method::PUT, self.resource_url(event)?)
            .header("content-type", "text/calendar; charset=utf-8")
            .header("if-none-match", "*")
            .body(ics::write(std::slice::from_ref(event)));
        let (status, _) = send_request(request, deadline, NAME).await?;
        if status.is_success() {
            return Ok(());
        }
        if status != StatusCode::PRECONDITION_FAILED {
            return Err(status_error(status, "TIMEOUT"));
        }
        // The resource exists, possibly by an earlier attempt of this call.
        let found = self.find_start(event, deadline).await;
        let found = found.map_err(|error| CapabilityError::timeout(error.message))?;
        match found {
            Some(start) if start == event.span.start => Ok(()),
            _ => {
                Err(CapabilityError::new("CONFLICT", "the draft has already become an event at another time"))
            }
        }
    }

    /// The start of the event, if it is in the calendar.
    pub async fn find_start(&self, event: &Event, deadline: Instant) -> Result<Option<DateTime<Utc>>> {
        let request = self.request(Method::GET, self.resource_url(event)?);
        let (status, body) = send_request(request, deadline, NAME).await.map_err(without_effects)?;
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            StatusCode::OK => {
                let any_time =
                    Span { start: DateTime::UNIX_EPOCH, end: event.span.end + chrono::Duration::days(3660) };
                let found = ics::occurrences(&body, any_time, self.settings.timezone.0);
                let first = found.ok().and_then(|found| found.first().map(|event| event.span.start));
                // An event that cannot be parsed any more exists nevertheless.
                Ok(Some(first.unwrap_or(event.span.start)))
            }
            _ => Err(status_error(status, "UNREACHABLE")),
        }
    }

    fn resource_url(&self, event: &Event) -> Result<Url> {
        let name = format!("{}.ics", event.id);
        self.url.join(&name).map_err(|_| CapabilityError::not_configured("`[calendar] url` is invalid"))
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.login {
            Some((user, password)) => request.basic_auth(user, Some(&password.0)),
            None => request,
        }
    }
}

/// Every event in a person's own calendar makes them busy, unless they have declined.
fn add_own(availability: &mut Availability, attendee: &str, found: &[Occurrence]) {
    let address = attendee.to_lowercase();
    let busy = found.iter().filter(|event| !event.declined.contains(&address)).map(|event| event.span);
    availability.busy.entry(attendee.to_owned()).or_default().extend(busy);
}

/// The URL with a slash at its end, so that resource names can be joined to it.
fn collection_url(url: &Url) -> Url {
    let mut url = url.clone();
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url
}

/// A refusal has no side effects. A server error has the code `on_failure`, which depends on the request.
fn status_error(status: StatusCode, on_failure: &'static str) -> CapabilityError {
    let (code, message) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ("FORBIDDEN", "the CalDAV server rejects the configured credentials")
        }
        StatusCode::SERVICE_UNAVAILABLE => ("UNREACHABLE", "the CalDAV server is not available"),
        _ if status.is_server_error() => (on_failure, "the CalDAV server failed"),
        _ => ("NOT_CONFIGURED", "there is no calendar at `[calendar] url`"),
    };
    CapabilityError::new(code, message)
}
