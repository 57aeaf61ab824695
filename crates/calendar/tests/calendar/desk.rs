//! A calendar in a temporary directory, and questions to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::DateTime;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_calendar::{Calendar, Listing, Settings};
use toolwright_capabilities::{Asker, Capability, Fault};

/// A Sunday.
pub const NOW: &str = "2026-03-01T10:00:00Z";
pub const MIRA: &str = "mira@studio.example";
pub const JON: &str = "jon@studio.example";

#[derive(Debug)]
pub struct Desk {
    pub calendar: Calendar,
    settings: Value,
    directory: TempDir,
}

/// Who asks, when, and with how much time.
#[derive(Debug, Clone, Copy)]
pub struct By {
    pub user: &'static str,
    pub org: Option<&'static str>,
    pub session: Option<&'static str>,
    pub now: &'static str,
    pub within: Duration,
}

pub const ANNA: By =
    By { user: "anna", org: Some("studio"), session: Some("s1"), now: NOW, within: Duration::from_secs(20) };

impl Desk {
    /// With everybody of the studio in the calendar, and these settings.
    pub fn new(mut settings: Value) -> Self {
        let directory = TempDir::new().unwrap();
        if settings.get("people").is_none() {
            settings["people"] = json!(["@studio.example"]);
        }
        Self { calendar: open(&directory.path().join("data/calendar.db"), &settings), settings, directory }
    }

    pub fn file(&self) -> PathBuf {
        self.directory.path().join("data/calendar.db")
    }

    pub fn settings(&self) -> &Value {
        &self.settings
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Another process on the same file, as far as the calendar can tell.
    pub fn another(&self) -> Calendar {
        open(&self.file(), &self.settings)
    }

    /// The same file with other settings.
    pub fn with(&self, settings: &Value) -> Calendar {
        open(&self.file(), settings)
    }

    pub fn listing(&self) -> Listing {
        let settings: Settings = serde_json::from_value(self.settings.clone()).unwrap();
        Listing::read(&self.file(), &settings, None, None).unwrap()
    }

    pub async fn ask(&self, by: By, function: &str, argument: Value) -> Result<Value, Fault> {
        ask(&self.calendar, by, function, argument).await
    }

    /// A draft of a half-hour with these people, on Monday and Tuesday in Berlin.
    pub async fn draft(&self, by: By, attendees: &[&str]) -> String {
        let proposal = self.ask(by, "propose", half_hour(attendees)).await.unwrap();
        proposal["draftId"].as_str().unwrap_or_else(|| panic!("{proposal}")).to_owned()
    }
}

pub fn open(file: &Path, settings: &Value) -> Calendar {
    let settings: Settings = serde_json::from_value(settings.clone()).unwrap();
    settings.check().unwrap();
    let secrets = |name: &str| (name == "SECRET").then(|| "open sesame".to_owned());
    Calendar::new(settings, file.to_owned(), Box::new(secrets))
}

pub async fn ask(calendar: &Calendar, by: By, function: &str, argument: Value) -> Result<Value, Fault> {
    let asker = Asker {
        tool: "calendar_create_event",
        execution_id: "x",
        client_id: "client",
        session: by.session,
        user: by.user,
        org: by.org,
        roles: &[],
        deadline: Instant::now() + by.within,
        now: Some(DateTime::parse_from_rfc3339(by.now).unwrap().timestamp_millis()),
    };
    calendar.call(&asker, function, vec![argument]).await.map(|answered| answered.value)
}

pub fn half_hour(attendees: &[&str]) -> Value {
    json!({
        "title": "Lighting review", "attendees": attendees, "durationMinutes": 30, "preferredTimes": [],
        "windowStart": "2026-03-02T00:00:00+01:00", "windowEnd": "2026-03-04T00:00:00+01:00",
        "timezone": "Europe/Berlin",
    })
}

pub fn commit(draft: &str, slot: usize, execution: &str) -> Value {
    json!({ "draftId": draft, "slotIndex": slot, "executionId": execution })
}

/// The code of a fault.
pub fn code<T: std::fmt::Debug>(answer: Result<T, Fault>) -> &'static str {
    answer.unwrap_err().code
}

/// The starts of proposed slots.
pub fn starts(proposal: &Value) -> Vec<&str> {
    proposal["slots"].as_array().unwrap().iter().map(|slot| slot["start"].as_str().unwrap()).collect()
}
