//! `[calendar]` of the configuration. Unknown and invalid settings are errors.

use std::collections::BTreeMap;

use chrono::{NaiveTime, Weekday};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::local_time;

/// The settings of the calendar.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// When events are proposed, in the time zone that the call names.
    pub working_hours: WorkingHours,
    /// The days on which events are proposed.
    pub days: Vec<Day>,
    /// The time zone of all-day events and of times without a zone.
    pub timezone: Zone,
    /// How long a draft can be committed.
    pub draft_expires_after_s: u32,
    /// The address of the organizer; with `url`, also of the calendar's owner.
    pub organizer: Option<String>,
    /// The people whose events are all in this calendar: addresses, or `@studio.example` for a whole domain.
    pub people: Vec<String>,
    /// A link template with `{event_id}`.
    pub conference: Option<String>,
    /// A CalDAV collection; without it the calendar is embedded.
    pub url: Option<HttpUrl>,
    pub user: Option<String>,
    /// The environment variable that holds the password.
    pub password_env: Option<String>,
    /// The CalDAV collections of other people, by address. They are only read.
    pub calendars: BTreeMap<String, HttpUrl>,
    pub zoom: Option<Zoom>,
}

/// The account at Zoom, for server-to-server OAuth.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Zoom {
    pub account_id: String,
    pub client_id: String,
    /// The environment variable that holds the secret.
    #[serde(default = "zoom_secret_env")]
    pub client_secret_env: String,
    /// The Zoom user who owns the meetings.
    #[serde(default = "zoom_user")]
    pub user: String,
    #[serde(default = "zoom_api")]
    pub api: HttpUrl,
    #[serde(default = "zoom_oauth")]
    pub oauth: HttpUrl,
}

/// `09:00-17:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkingHours {
    pub from: NaiveTime,
    /// `None` is midnight, the end of the day.
    pub to: Option<NaiveTime>,
}

/// `mon` to `sun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Day(#[serde(with = "DayName")] pub Weekday);

#[derive(Deserialize, Serialize)]
#[serde(remote = "Weekday", rename_all = "lowercase")]
enum DayName {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// An http or https URL without credentials.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpUrl(pub Url);

/// The IANA name of a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(pub Tz);

/// The organizer if none is configured.
const DEFAULT_ORGANIZER: &str = "toolwright@localhost";

impl Default for Settings {
    fn default() -> Self {
        let nine = NaiveTime::from_hms_opt(9, 0, 0).unwrap_or_default();
        Self {
            working_hours: WorkingHours { from: nine, to: NaiveTime::from_hms_opt(17, 0, 0) },
            days: vec![
                Day(Weekday::Mon),
                Day(Weekday::Tue),
                Day(Weekday::Wed),
                Day(Weekday::Thu),
                Day(Weekday::Fri),
            ],
            timezone: Zone(Tz::UTC),
            draft_expires_after_s: 86_400,
            organizer: None,
            people: Vec::new(),
            conference: None,
            url: None,
            user: None,
            password_env: None,
            calendars: BTreeMap::new(),
            zoom: None,
        }
    }
}

impl Settings {
    /// Checks values and combinations that the types do not exclude.
    pub fn check(&self) -> Result<(), String> {
        if self.days.is_empty() {
            return Err("`days` must not be empty: leave it out for Monday to Friday".to_owned());
        }
        if self.draft_expires_after_s == 0 {
            return Err("`draft_expires_after_s` must be at least 1".to_owned());
        }
        if let Some(wrong) = self.people.iter().find(|person| !person.contains('@')) {
            return Err(format!("`people`: `{wrong}` must be an address, or a domain like @studio.example"));
        }
        let addresses = self.calendars.keys().chain(&self.organizer);
        if let Some(wrong) = addresses.into_iter().find(|address| !is_address(address)) {
            return Err(format!("`{wrong}` is not an address like mira@studio.example"));
        }
        self.check_services()
    }

    fn check_services(&self) -> Result<(), String> {
        if self.conference.as_ref().is_some_and(|template| !is_template(template)) {
            return Err("`conference` must be an http(s) URL with {event_id}, \
                 like https://meet.jit.si/{event_id}"
                .to_owned());
        }
        if self.conference.is_some() && self.zoom.is_some() {
            return Err("`conference` and `[calendar.zoom]` must not be set together".to_owned());
        }
        if self.url.is_some() && self.organizer.is_none() {
            return Err("`url` needs `organizer`, the address of the calendar's owner".to_owned());
        }
        if self.url.is_none() && self.user.is_some() {
            return Err("`user` needs `url`, the URL of a CalDAV calendar".to_owned());
        }
        if self.user.is_some() != self.password_env.is_some() {
            return Err(
                "`user` and `password_env`, the name of an environment variable, must be set together"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The address of the organizer.
    pub fn organizer(&self) -> &str {
        self.organizer.as_deref().unwrap_or(DEFAULT_ORGANIZER)
    }

    /// Whether all events of this person are in the calendar.
    pub fn includes_person(&self, address: &str) -> bool {
        let lower = address.to_lowercase();
        let matches = |person: &String| {
            let person = person.to_lowercase();
            lower == person || person.starts_with('@') && lower.ends_with(&person)
        };
        self.people.iter().any(matches)
    }
}

fn is_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
}

fn is_template(text: &str) -> bool {
    text.contains("{event_id}")
        && Url::parse(&text.replace("{event_id}", "x"))
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

fn zoom_secret_env() -> String {
    "ZOOM_CLIENT_SECRET".to_owned()
}

fn zoom_user() -> String {
    "me".to_owned()
}

fn zoom_api() -> HttpUrl {
    constant_url("https://api.zoom.us/v2")
}

fn zoom_oauth() -> HttpUrl {
    constant_url("https://zoom.us/oauth/token")
}

#[allow(clippy::unwrap_used, reason = "the arguments are constants")]
fn constant_url(url: &str) -> HttpUrl {
    HttpUrl(Url::parse(url).unwrap())
}

impl TryFrom<String> for WorkingHours {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let invalid = || format!("`{text}` is not of the form 09:00-17:00, with the later time last");
        let time = |part: &str| NaiveTime::parse_from_str(part.trim(), "%H:%M").map_err(|_| invalid());
        let (from, to) = text.split_once('-').ok_or_else(invalid)?;
        let from = time(from)?;
        let to = if to.trim() == "24:00" { None } else { Some(time(to)?) };
        if to.is_some_and(|to| to <= from) { Err(invalid()) } else { Ok(Self { from, to }) }
    }
}

impl From<WorkingHours> for String {
    fn from(hours: WorkingHours) -> Self {
        let to = hours.to.map_or("24:00".to_owned(), |to| to.format("%H:%M").to_string());
        format!("{}-{to}", hours.from.format("%H:%M"))
    }
}

impl TryFrom<String> for HttpUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| format!("`{text}` is not an http(s) URL"))?;
        if url.username().is_empty() && url.password().is_none() {
            Ok(Self(url))
        } else {
            Err("a URL must not contain a user or password: set `user` and `password_env`".to_owned())
        }
    }
}

impl From<HttpUrl> for String {
    fn from(url: HttpUrl) -> Self {
        url.0.into()
    }
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let invalid = || format!("`{text}` is not an IANA time zone like Europe/Berlin");
        local_time::parse_zone(&text).map(Self).ok_or_else(invalid)
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.0.name().to_owned()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
