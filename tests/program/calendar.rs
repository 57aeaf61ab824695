//! The calendar tools and `toolwright calendar`, end to end: a proposal in one process, the event in another.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::serve::Serving;
use super::support::{Project, Run};

const WISH: &str = r#"{"attendees": ["mira@studio.example", "guest@elsewhere.example"], "duration_minutes": 30,
    "title": "Lighting review", "timezone": "Europe/Berlin"}"#;

fn call(project: &Project, tool: &str, args: &str, more: &[&str]) -> Run {
    project.run(&[&["call", tool, args, "--format", "json"], more].concat())
}

/// The data of a new proposal.
fn proposal(project: &Project, more: &[&str]) -> Value {
    call(project, "calendar_propose_event", WISH, more).expect_code(0).json()["data"].clone()
}

fn choice(proposal: &Value, slot: usize) -> String {
    json!({ "event_draft_id": proposal["event_draft_id"], "slot_index": slot }).to_string()
}

fn project(settings: &str) -> Project {
    let project = Project::reference();
    fs::write(project.dir().join("toolwright.toml"), settings).unwrap();
    project
}

fn events(project: &Project) -> Vec<Value> {
    let listed = project.run(&["calendar", "list", "--format", "json"]).expect_code(0).json();
    listed.as_array().unwrap().clone()
}

#[test]
fn a_draft_of_one_command_becomes_an_event_in_another_after_confirmation() {
    let project = project(
        "[calendar]\npeople = [\"@studio.example\"]\nconference = \"https://meet.example/{event_id}\"\n",
    );
    let plan = proposal(&project, &[]);
    assert_eq!(plan["unknown_availability"], json!(["guest@elsewhere.example"]));
    let slots = plan["slots"].as_array().unwrap();
    assert_eq!(slots.len(), 10, "{plan}");
    assert_eq!(plan["expires_at"].as_str().unwrap().len(), "2026-03-02T10:00:00Z".len(), "{plan}");
    let create =
        |slot: usize, more: &[&str]| call(&project, "calendar_create_event", &choice(&plan, slot), more);
    let asked = create(1, &[]).expect_code(1).json();
    assert_eq!(asked["error"]["type"], "CONFIRMATION_REQUIRED");
    // The person reads what is in the draft, whatever the arguments say.
    let preview = asked["error"]["details"]["confirmation_request"]["preview"].as_str().unwrap();
    assert!(preview.starts_with("Create the event “Lighting review”, "), "{preview}");
    for part in [
        "(Europe/Berlin, UTC+0",
        "Attendees: mira@studio.example, guest@elsewhere.example.",
        "Place: a conference link at meet.example.",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert!(events(&project).is_empty());
    // The draft does not exist for another user.
    assert_eq!(create(1, &["--yes", "--user", "eve"]).expect_code(1).json()["error"]["type"], "NOT_FOUND");
    let made = create(1, &["--yes"]).expect_code(0).json()["data"].clone();
    let id = made["event_id"].as_str().unwrap();
    let expected = json!({
        "event_id": id, "title": "Lighting review", "start": slots[1]["start"], "end": slots[1]["end"],
        "timezone": "Europe/Berlin", "attendees": plan["attendees"],
        "conference_url": format!("https://meet.example/{id}"),
    });
    assert_eq!(made, expected);
    // The first confirmation request is the one that was answered.
    let question = asked["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    project.run(&["approve", question]).expect_code(1).expect_stderr(&["was answered already"]);
    assert_eq!(events(&project).len(), 1);
    // A booked time is not proposed again.
    let next = proposal(&project, &[]);
    assert!(
        next["slots"].as_array().unwrap().iter().all(|slot| slot["start"] != slots[1]["start"]),
        "{next}"
    );
}

#[test]
fn a_proposal_over_rest_without_sessions_becomes_an_event_that_a_person_approves() {
    let project = project("");
    let serving = Serving::start(&project, &["--access-log", "false"]);
    let call = |tool: &str, args: &str| {
        let body = format!("{{\"args\": {args}}}");
        serving.ask(&format!("POST /v1/tools/{tool}/call"), "", &body).1
    };
    let plan = call("calendar_propose_event", WISH)["data"].clone();
    let asked = call("calendar_create_event", &choice(&plan, 0));
    assert_eq!(asked["error"]["type"], "CONFIRMATION_REQUIRED", "{asked}");
    let question = asked["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    let (status, made) = serving.ask(&format!("POST /v1/confirmations/{question}/approve"), "", "{}");
    assert_eq!((status, &made["ok"]), (200, &json!(true)), "{made}");
    assert_eq!(made["data"]["start"], plan["slots"][0]["start"]);
    assert_eq!(made["data"]["conference_url"], Value::Null);
    // Commands read the file while the server uses it.
    assert_eq!(events(&project)[0]["eventId"], made["data"]["event_id"]);
    let again = call("calendar_create_event", &choice(&plan, 1));
    let question = again["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    let (_, again) = serving.ask(&format!("POST /v1/confirmations/{question}/approve"), "", "{}");
    assert_eq!(again["error"]["type"], "CONFLICT", "{again}");
}

#[test]
fn events_are_listed_for_people_and_exported_for_other_programs() {
    let project = project("[calendar]\norganizer = \"office@studio.example\"\n");
    project.run(&["calendar", "list"]).expect_code(0).expect_stderr(&["no events", "calendar_propose_event"]);
    assert!(!project.dir().join(".toolwright/calendar.db").exists(), "looking makes nothing");
    let plan = proposal(&project, &[]);
    call(&project, "calendar_create_event", &choice(&plan, 0), &["--yes"]).expect_code(0);
    let line = project.run(&["calendar", "list"]).expect_code(0).stdout;
    assert!(line.contains("Lighting review") && line.contains("mira@studio.example"), "{line}");
    // A title may come from a model: control characters are removed.
    let odd = WISH.replace("Lighting review", r"\u001b[2Jall free\u202e");
    let plan = call(&project, "calendar_propose_event", &odd, &[]).expect_code(0).json()["data"].clone();
    call(&project, "calendar_create_event", &choice(&plan, 0), &["--yes"]).expect_code(0);
    let lines = project.run(&["calendar", "list"]).expect_code(0).stdout;
    assert!(lines.contains("\\u001b[2Jall free\\u202e  mira@studio.example"), "{lines}");
    let text = project.run(&["calendar", "export"]).expect_code(0).stdout;
    for part in [
        "BEGIN:VCALENDAR\r\n",
        "TZID=Europe/Berlin:",
        "SUMMARY:Lighting review",
        "mailto:office@studio.example",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let none = project.run(&["calendar", "export", "--to", "2020-01-01"]).expect_code(0).stdout;
    assert!(none.contains("END:VCALENDAR") && !none.contains("VEVENT"), "{none}");
    project
        .run(&["calendar", "list", "--from", "monday"])
        .expect_code(2)
        .expect_stderr(&["monday", "2026-03-02"]);
    project.run(&["calendar", "--help"]).expect_code(0);
}

#[test]
fn killed_commands_leave_at_most_one_event_per_draft() {
    let project = project("");
    for round in 0..8_u64 {
        let plan = proposal(&project, &[]);
        let mut command = project.command(&["call", "calendar_create_event", &choice(&plan, 0), "--yes"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20 + round * 25));
        let _ = child.kill();
        child.wait().unwrap();
        // The same draft can be used again.
        let again = call(&project, "calendar_create_event", &choice(&plan, 0), &["--yes"]).json();
        assert!(again["ok"] == true || again["error"]["type"] == "CONFLICT", "{again}");
        assert_eq!(events(&project).len() as u64, round + 1);
    }
}

#[test]
fn invalid_settings_are_reported_and_secrets_are_not_printed() {
    let project = Project::with(&["find-note"]);
    for (text, expected_text) in [
        ("working_hours = \"17:00-09:00\"", "later time last"),
        ("timezone = \"Berlin\"", "Europe/Berlin"),
        ("url = \"https://dav.example/mira/\"", "needs `organizer`"),
        ("conference = \"https://meet.example\"", "{event_id}"),
        ("colour = \"red\"", "unknown field `colour`"),
    ] {
        fs::write(project.dir().join("toolwright.toml"), format!("[calendar]\n{text}\n")).unwrap();
        project.run(&["list"]).expect_code(1).expect_stderr(&[expected_text, "help"]);
    }
    let text = "[calendar]\nurl = \"https://dav.example/mira/\"\nuser = \"mira\"\npassword_env = \"DAV_PASSWORD\"\norganizer = \"mira@studio.example\"\n[calendar.zoom]\naccount_id = \"a\"\nclient_id = \"c\"\n[calendar.calendars]\n\"jon@studio.example\" = \"https://dav.example/jon/\"\n";
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    let mut command = project.command(&["serve", "--dump-config"]);
    command.env("DAV_PASSWORD", "hunter2").env("ZOOM_CLIENT_SECRET", "hunter2");
    let dumped = super::support::run(command).expect_code(0).stdout;
    assert!(dumped.contains("DAV_PASSWORD") && dumped.contains("https://api.zoom.us/v2"), "{dumped}");
    assert!(!dumped.contains("hunter2"), "{dumped}");
    fs::write(project.dir().join("toolwright.toml"), &dumped).unwrap();
    assert_eq!(project.run(&["serve", "--dump-config"]).expect_code(0).stdout, dumped);
}

#[test]
fn a_misconfigured_calendar_reports_the_reason() {
    let settings = "[calendar]\nurl = \"http://127.0.0.1:1/mira/\"\norganizer = \"mira@studio.example\"\n";
    let project = project(settings);
    let failed = call(&project, "calendar_propose_event", WISH, &[]).expect_code(1);
    assert_eq!(failed.json()["error"]["type"], "TRANSIENT");
    fs::write(
        project.dir().join("toolwright.toml"),
        format!("{settings}user = \"mira\"\npassword_env = \"NOT_SET_AT_ALL\"\n"),
    )
    .unwrap();
    let failed = call(&project, "calendar_propose_event", WISH, &[]).expect_code(1);
    assert_eq!(failed.json()["error"]["type"], "PERMANENT");
    failed.expect_stderr(&["NOT_SET_AT_ALL is not set"]);
}
