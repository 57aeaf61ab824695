//! A calendar in a temporary directory, and calls to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::DateTime;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_calendar::{Calendar, EventList, Settings};
use toolwright_capabilities::{CallIdentity, Capability, CapabilityError};

/// A Sunday.
pub const NOW: &str = "2026-03-01T10:00:00Z";
pub const MIRA: &str = "mira@studio.example";
pub const JON: &str = "jon@studio.example";

#[derive(Debug)]
pub struct TestCalendar {
    pub calendar: Calendar,
    settings: Value,
    directory: TempDir,
}

/// The principal, session, time and timeout of a call.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    pub user: &'static str,
    pub org: Option<&'static str>,
    pub session: Option<&'static str>,
    pub now: &'static str,
    pub timeout: Duration,
}

pub const ANNA: Caller = Caller {
    user: "anna",
    org: Some("studio"),
    session: Some("s1"),
    now: NOW,
    timeout: Duration::from_secs(20),
};

impl TestCalendar {
    /// With these settings, and all of `@studio.example` as `people`.
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

    /// Opens the same file again, like another process.
    pub fn reopen(&self) -> Calendar {
        open(&self.file(), &self.settings)
    }

    /// Opens the same file with other settings.
    pub fn reopen_with(&self, settings: &Value) -> Calendar {
        open(&self.file(), settings)
    }

    pub fn events(&self) -> EventList {
        let settings: Settings = serde_json::from_value(self.settings.clone()).unwrap();
        EventList::read(&self.file(), &settings, None, None).unwrap()
    }

    pub async fn call(
        &self,
        caller: Caller,
        function: &str,
        argument: Value,
    ) -> Result<Value, CapabilityError> {
        call(&self.calendar, caller, function, argument).await
    }

    /// The id of a new draft: half an hour with these people, on Monday or Tuesday in Berlin.
    pub async fn draft(&self, caller: Caller, attendees: &[&str]) -> String {
        let proposal = self.call(caller, "propose", half_hour(attendees)).await.unwrap();
        proposal["draftId"].as_str().unwrap_or_else(|| panic!("{proposal}")).to_owned()
    }
}

pub fn open(file: &Path, settings: &Value) -> Calendar {
    let settings: Settings = serde_json::from_value(settings.clone()).unwrap();
    settings.check().unwrap();
    let secrets = |name: &str| (name == "SECRET").then(|| "open sesame".to_owned());
    Calendar::new(settings, file.to_owned(), secrets)
}

pub async fn call(
    calendar: &Calendar,
    caller: Caller,
    function: &str,
    argument: Value,
) -> Result<Value, CapabilityError> {
    let identity = CallIdentity {
        tool: "calendar_create_event",
        execution_id: "x",
        client_id: "client",
        session: caller.session,
        user: caller.user,
        org: caller.org,
        roles: &[],
        deadline: Instant::now() + caller.timeout,
        now: Some(DateTime::parse_from_rfc3339(caller.now).unwrap().timestamp_millis()),
    };
    calendar.call(&identity, function, vec![argument]).await.map(|output| output.value)
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

/// The code of an error.
pub fn code<T: std::fmt::Debug>(result: Result<T, CapabilityError>) -> &'static str {
    result.unwrap_err().code
}

/// The starts of proposed slots.
pub fn starts(proposal: &Value) -> Vec<&str> {
    proposal["slots"].as_array().unwrap().iter().map(|slot| slot["start"].as_str().unwrap()).collect()
}
