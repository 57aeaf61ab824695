//! `[calendar]` of the configuration. An unknown setting is an error, and so is one that cannot hold.

use std::collections::BTreeMap;

use chrono::{NaiveTime, Weekday};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::zone;

/// What the calendar goes by.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// When events are proposed, in the zone of whoever asks.
    pub working_hours: Hours,
    /// On which days.
    pub days: Vec<Day>,
    /// The zone of whole days and of times without a zone.
    pub timezone: Zone,
    /// How long a draft can be committed.
    pub draft_expires_after_s: u32,
    /// Who invites; with `url`, also whose calendar that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organizer: Option<String>,
    /// Whose events are all in this calendar: addresses, or `@studio.example` for everybody there.
    pub people: Vec<String>,
    /// A link template with `{event_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conference: Option<String>,
    /// A CalDAV collection; without it the calendar is embedded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The environment variable that holds the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// CalDAV collections of other people, which are only read.
    pub calendars: BTreeMap<String, Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zoom: Option<Zoom>,
}

/// Server-to-server OAuth of Zoom.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Zoom {
    pub account_id: String,
    pub client_id: String,
    /// The environment variable that holds the secret.
    #[serde(default = "secret_env")]
    pub client_secret_env: String,
    /// Whose meetings these are.
    #[serde(default = "zoom_user")]
    pub user: String,
    #[serde(default = "zoom_api")]
    pub api: Address,
    #[serde(default = "zoom_oauth")]
    pub oauth: Address,
}

/// `09:00-17:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hours {
    pub from: NaiveTime,
    /// `None` is midnight, the end of the day.
    pub to: Option<NaiveTime>,
}

/// `mon` to `sun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day(pub Weekday);

/// Where something is on the network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address(pub Url);

/// An IANA name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(pub Tz);

/// Who invites, where nobody is named.
const ORGANIZER: &str = "toolwright@localhost";

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Mon),
    ("tue", Weekday::Tue),
    ("wed", Weekday::Wed),
    ("thu", Weekday::Thu),
    ("fri", Weekday::Fri),
    ("sat", Weekday::Sat),
    ("sun", Weekday::Sun),
];

impl Default for Settings {
    fn default() -> Self {
        let nine = NaiveTime::from_hms_opt(9, 0, 0).unwrap_or_default();
        Self {
            working_hours: Hours { from: nine, to: NaiveTime::from_hms_opt(17, 0, 0) },
            days: DAYS[..5].iter().map(|(_, day)| Day(*day)).collect(),
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
    /// What no single setting shows.
    pub fn check(&self) -> Result<(), String> {
        if self.days.is_empty() {
            return Err("`days` names no day: leave it out for Monday to Friday".to_owned());
        }
        if self.draft_expires_after_s == 0 {
            return Err("`draft_expires_after_s` must be at least 1".to_owned());
        }
        if let Some(wrong) = self.people.iter().find(|person| !person.contains('@')) {
            return Err(format!(
                "`people`: `{wrong}` is neither an address nor, like @studio.example, a domain"
            ));
        }
        let addresses = self.calendars.keys().chain(&self.organizer);
        if let Some(wrong) = addresses.into_iter().find(|address| !is_address(address)) {
            return Err(format!("`{wrong}` is not an address such as mira@studio.example"));
        }
        self.check_outside()
    }

    fn check_outside(&self) -> Result<(), String> {
        if self.conference.as_ref().is_some_and(|template| !is_template(template)) {
            return Err("`conference` must be an http(s) address with {event_id} in it, \
                 such as https://meet.jit.si/{event_id}"
                .to_owned());
        }
        if self.conference.is_some() && self.zoom.is_some() {
            return Err("`conference` and `[calendar.zoom]` exclude each other".to_owned());
        }
        if self.url.is_some() && self.organizer.is_none() {
            return Err("`url` needs `organizer`, the address of whoever's calendar that is".to_owned());
        }
        if self.url.is_none() && self.user.is_some() {
            return Err("`user` needs `url`, the address of a CalDAV calendar".to_owned());
        }
        if self.user.is_some() != self.password_env.is_some() {
            return Err(
                "`user` and `password_env`, the name of an environment variable, belong together".to_owned()
            );
        }
        Ok(())
    }

    /// The address in ORGANIZER.
    pub fn organizer(&self) -> &str {
        self.organizer.as_deref().unwrap_or(ORGANIZER)
    }

    /// Whether all events of this person are in the calendar.
    pub fn knows(&self, address: &str) -> bool {
        let lower = address.to_lowercase();
        let is = |person: &String| {
            let person = person.to_lowercase();
            lower == person || person.starts_with('@') && lower.ends_with(&person)
        };
        self.people.iter().any(is)
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

fn secret_env() -> String {
    "ZOOM_CLIENT_SECRET".to_owned()
}

fn zoom_user() -> String {
    "me".to_owned()
}

fn zoom_api() -> Address {
    constant("https://api.zoom.us/v2")
}

fn zoom_oauth() -> Address {
    constant("https://zoom.us/oauth/token")
}

#[allow(clippy::unwrap_used, reason = "constants")]
fn constant(url: &str) -> Address {
    Address(Url::parse(url).unwrap())
}

impl TryFrom<String> for Hours {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not of the form 09:00-17:00, with the later time last");
        let time = |part: &str| NaiveTime::parse_from_str(part.trim(), "%H:%M").map_err(|_| wrong());
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let from = time(from)?;
        let to = if to.trim() == "24:00" { None } else { Some(time(to)?) };
        if to.is_some_and(|to| to <= from) { Err(wrong()) } else { Ok(Self { from, to }) }
    }
}

impl From<Hours> for String {
    fn from(hours: Hours) -> Self {
        let to = hours.to.map_or("24:00".to_owned(), |to| to.format("%H:%M").to_string());
        format!("{}-{to}", hours.from.format("%H:%M"))
    }
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = DAYS.iter().find(|(name, _)| *name == text);
        let wrong = || format!("`{text}` is not a day: mon, tue, wed, thu, fri, sat, sun");
        found.map(|(_, day)| Self(*day)).ok_or_else(wrong)
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        DAYS.iter().find(|(_, of)| *of == day.0).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| format!("`{text}` is not an http(s) address"))?;
        if url.username().is_empty() && url.password().is_none() {
            Ok(Self(url))
        } else {
            Err("an address must not hold a password: name its environment variable".to_owned())
        }
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.0.into()
    }
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an IANA time zone such as Europe/Berlin");
        zone::named(&text).map(Self).ok_or_else(wrong)
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
