//! CalDAV against a real Radicale server on loopback.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{ANNA, Caller, JON, MIRA, TestCalendar, call, code, commit, half_hour, open, starts};
use crate::{export, python};

/// A server with the users mira and jon, each with a calendar `work`.
pub struct Radicale {
    child: Child,
    url: String,
    client: Client,
    directory: TempDir,
}

impl Drop for Radicale {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Radicale {
    pub async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("users"), "mira:open sesame\njon:open sesame\n").unwrap();
        // Radicale cannot bind port 0, and another program may take a free port first.
        let started = (0..20).find_map(|_| launch(directory.path()));
        let (child, port) = started.expect("Radicale did not start");
        let client = toolwright_capabilities::http::service_client(Duration::from_secs(5)).unwrap();
        let server = Self { child, url: format!("http://127.0.0.1:{port}"), client, directory };
        for user in ["mira", "jon"] {
            assert_eq!(server.send("MKCALENDAR", &format!("{user}/work/"), user, "").await, 201);
        }
        server
    }

    async fn send(&self, method: &str, path: &str, user: &str, body: &str) -> u16 {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request =
            self.client.request(method, format!("{}/{path}", self.url)).basic_auth(user, Some("open sesame"));
        request
            .header("content-type", "text/calendar")
            .body(body.to_owned())
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    }

    /// Puts events into a calendar, like another program.
    async fn put(&self, path: &str, components: &str) {
        let text =
            format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//other//EN\n{components}\nEND:VCALENDAR\n");
        let user = path.split('/').next().unwrap();
        let status = self.send("PUT", path, user, &text.replace('\n', "\r\n")).await;
        assert_eq!(status, 201, "{text}");
    }

    pub fn settings(&self) -> Value {
        json!({
            "url": format!("{}/mira/work", self.url), "user": "mira", "password_env": "SECRET", "organizer": MIRA,
            "timezone": "Europe/Berlin", "people": [], "calendars": { JON: format!("{}/jon/work/", self.url) },
        })
    }

    /// The files of a calendar.
    pub fn files(&self, calendar: &str) -> Vec<String> {
        let folder = self.directory.path().join("data/collection-root").join(calendar);
        let files = std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap());
        let mut files: Vec<_> = files.filter(|name| name.ends_with(".ics")).collect();
        files.sort();
        files
    }

    fn text(&self, path: &str) -> String {
        let path = self.directory.path().join("data/collection-root").join(path);
        std::fs::read_to_string(path).unwrap().replace("\r\n ", "").replace("\n ", "")
    }
}

/// Starts a server and returns its port once it listens.
fn launch(directory: &Path) -> Option<(Child, u16)> {
    let at = |name: &str| directory.join(name).display().to_string();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut child = Command::new(python::python())
        .args(["-m", "radicale", &format!("--server-hosts=127.0.0.1:{port}"), "--logging-level=info"])
        .args(["--auth-type=htpasswd", "--auth-htpasswd-encryption=plain", "--rights-type=authenticated"])
        .arg(format!("--auth-htpasswd-filename={}", at("users")))
        .arg(format!("--storage-filesystem-folder={}", at("data")))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut output = Vec::new();
    for line in log.by_ref() {
        let is_ready = line.contains("server ready");
        output.push(line);
        if is_ready {
            std::thread::spawn(move || log.for_each(drop));
            return Some((child, port));
        }
    }
    eprintln!("Radicale did not start:\n{}", output.join("\n"));
    child.wait().unwrap();
    None
}

fn event(uid: &str, lines: &str) -> String {
    format!("BEGIN:VEVENT\nUID:{uid}\nDTSTAMP:20260101T000000Z\nSUMMARY:{uid}\n{lines}\nEND:VEVENT")
}

/// A custom time zone with the rules of Berlin.
const ZONE: &str = "BEGIN:VTIMEZONE\nTZID:Our Own Time\nBEGIN:STANDARD\nDTSTART:19701025T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\nEND:STANDARD\nBEGIN:DAYLIGHT\nDTSTART:19700329T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\nEND:DAYLIGHT\nEND:VTIMEZONE";

async fn busy(calendar: &TestCalendar, attendee: &str, start: &str, end: &str) -> Vec<String> {
    let args = json!({ "attendees": [attendee], "start": start, "end": end });
    let output = calendar.call(ANNA, "freeBusy", args).await.unwrap();
    assert_eq!(output["unknownAttendees"], json!([]));
    let text = |span: &Value, name: &str| span[name].as_str().unwrap().to_owned();
    let spans = output["busy"][attendee].as_array().unwrap();
    spans.iter().map(|span| format!("{} {}", text(span, "start"), text(span, "end"))).collect()
}

#[tokio::test]
async fn the_connection_can_be_checked() {
    let server = Radicale::start().await;
    let file = server.directory.path().join("calendar.db");
    let check = async |settings: &Value| open(&file, settings).check_connection().await;
    check(&server.settings()).await.unwrap();
    let mut other = server.settings();
    other["user"] = json!("eve");
    assert!(check(&other).await.is_err());
    other = server.settings();
    other["url"] = json!(format!("{}/mira/nowhere", server.url));
    assert!(check(&other).await.is_err());
    assert!(!file.exists());
}

#[tokio::test]
async fn events_of_other_programs_are_busy_times() {
    let server = Radicale::start().await;
    let weekly = event(
        "weekly",
        "DTSTART;TZID=Our Own Time:20250106T090000\nDTEND;TZID=Our Own Time:20250106T100000\nRRULE:FREQ=WEEKLY;BYDAY=MO\nEXDATE;TZID=Our Own Time:20260316T090000",
    );
    let moved = event(
        "weekly",
        "RECURRENCE-ID;TZID=Our Own Time:20260309T090000\nDTSTART;TZID=Our Own Time:20260309T140000\nDTEND;TZID=Our Own Time:20260309T150000",
    );
    server.put("mira/work/weekly.ics", &format!("{ZONE}\n{weekly}\n{moved}")).await;
    let day = event("holiday", "DTSTART;VALUE=DATE:20260319\nDTEND;VALUE=DATE:20260320");
    server.put("mira/work/holiday.ics", &day).await;
    let tokyo = event("tokyo", "DTSTART;TZID=Asia/Tokyo:20260324T170000\nDURATION:PT45M");
    server.put("mira/work/tokyo.ics", &tokyo).await;
    for (name, line) in [("off", "STATUS:CANCELLED"), ("free", "TRANSP:TRANSPARENT")] {
        let lines = format!("DTSTART:20260325T090000Z\nDTEND:20260325T100000Z\n{line}");
        server.put(&format!("mira/work/{name}.ics"), &event(name, &lines)).await;
    }
    let declined = format!(
        "DTSTART:20260326T090000Z\nDTEND:20260326T100000Z\nORGANIZER:mailto:eve@x.example\nATTENDEE;PARTSTAT=DECLINED:mailto:{MIRA}"
    );
    server.put("mira/work/declined.ics", &event("declined", &declined)).await;
    let calendar = TestCalendar::new(server.settings());
    let expected = [
        "2026-03-02T08:00:00Z 2026-03-02T09:00:00Z",
        "2026-03-09T13:00:00Z 2026-03-09T14:00:00Z",
        "2026-03-18T23:00:00Z 2026-03-19T23:00:00Z",
        "2026-03-23T08:00:00Z 2026-03-23T09:00:00Z",
        "2026-03-24T08:00:00Z 2026-03-24T08:45:00Z",
        "2026-03-30T07:00:00Z 2026-03-30T08:00:00Z",
    ];
    assert_eq!(busy(&calendar, MIRA, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z").await, expected);
    assert!(busy(&calendar, JON, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z").await.is_empty());
    let proposal = calendar.call(ANNA, "propose", half_hour(&[MIRA, JON])).await.unwrap();
    assert_eq!(starts(&proposal)[0], "2026-03-02T10:00:00+01:00");
    assert_eq!(proposal["unknownAttendees"], json!([]));
}

#[tokio::test]
async fn calendars_of_others_are_read_and_an_unreadable_one_makes_its_owner_unknown() {
    let server = Radicale::start().await;
    server.put("jon/work/a.ics", &event("a", "DTSTART:20260302T080000Z\nDTEND:20260302T100000Z")).await;
    let mut settings = server.settings();
    settings["calendars"]["lost@studio.example"] = json!(format!("{}/lost/work/", server.url));
    let calendar = TestCalendar::new(settings);
    let attendees = [MIRA, JON, "lost@studio.example", "guest@elsewhere.example"];
    let proposal = calendar.call(ANNA, "propose", half_hour(&attendees)).await.unwrap();
    assert_eq!(starts(&proposal)[0], "2026-03-02T11:00:00+01:00");
    assert_eq!(proposal["unknownAttendees"], json!(["lost@studio.example", "guest@elsewhere.example"]));
}

#[tokio::test]
async fn an_event_in_a_shared_calendar_is_for_its_attendees_or_for_all_if_it_has_none() {
    let server = Radicale::start().await;
    let named = format!(
        "DTSTART:20260302T080000Z\nDTEND:20260302T090000Z\nORGANIZER:mailto:{MIRA}\nATTENDEE:mailto:LI@studio.example"
    );
    server.put("mira/work/named.ics", &event("named", &named)).await;
    server.put("mira/work/all.ics", &event("all", "DTSTART:20260302T120000Z\nDTEND:20260302T130000Z")).await;
    let mut settings = server.settings();
    settings["people"] = json!(["@studio.example"]);
    let calendar = TestCalendar::new(settings);
    let day = ("2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z");
    let (named, all) =
        ("2026-03-02T08:00:00Z 2026-03-02T09:00:00Z", "2026-03-02T12:00:00Z 2026-03-02T13:00:00Z");
    assert_eq!(busy(&calendar, "li@studio.example", day.0, day.1).await, [named, all]);
    assert_eq!(busy(&calendar, MIRA, day.0, day.1).await, [named, all]);
    assert_eq!(busy(&calendar, "sam@studio.example", day.0, day.1).await, [all]);
}

#[tokio::test]
async fn an_event_is_put_once_and_others_can_read_it() {
    let server = Radicale::start().await;
    let calendar = TestCalendar::new(server.settings());
    let draft = calendar.draft(ANNA, &[MIRA, JON]).await;
    let mut args = commit(&draft, 0, "a");
    args["note"] = json!("Bring a lamp.");
    let event = calendar.call(ANNA, "commit", args.clone()).await.unwrap();
    assert_eq!(calendar.call(ANNA, "commit", args).await.unwrap(), event);
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "b")).await), "CONFLICT");
    let name = format!("{}.ics", event["eventId"].as_str().unwrap());
    assert_eq!(server.files("mira/work"), std::slice::from_ref(&name));
    let text = server.text(&format!("mira/work/{name}"));
    for part in
        ["DTSTART;TZID=Europe/Berlin:20260302T090000", "DESCRIPTION:Bring a lamp.", &format!("mailto:{JON}")]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    // The server now reports the time as busy.
    let next = calendar.call(ANNA, "propose", half_hour(&[MIRA])).await.unwrap();
    assert_eq!(starts(&next)[0], "2026-03-02T09:30:00+01:00");
    // After another program has deleted the event, the time is free again.
    assert_eq!(server.send("DELETE", &format!("mira/work/{name}"), "mira", "").await, 200);
    let next = calendar.call(ANNA, "propose", half_hour(&[MIRA])).await.unwrap();
    assert_eq!(starts(&next)[0], "2026-03-02T09:00:00+01:00");
}

#[tokio::test]
async fn a_time_that_another_program_has_booked_since_is_a_conflict() {
    let server = Radicale::start().await;
    let calendar = TestCalendar::new(server.settings());
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    server
        .put("mira/work/quick.ics", &event("quick", "DTSTART:20260302T081500Z\nDTEND:20260302T082000Z"))
        .await;
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    assert_eq!(server.files("mira/work"), ["quick.ics"]);
    // Other slots of the draft can still be booked, also by another call.
    calendar.call(ANNA, "commit", commit(&draft, 1, "b")).await.unwrap();
    assert_eq!(server.files("mira/work").len(), 2);
}

#[tokio::test]
async fn a_call_that_died_after_its_put_is_resumed() {
    let server = Radicale::start().await;
    let calendar = TestCalendar::new(server.settings());
    for other in ["a", "b"] {
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        let event = calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
        undo_booking(&calendar.file(), event["eventId"].as_str().unwrap());
        assert!(!calendar.events().rows().iter().any(|row| event["eventId"] == row.id));
        let later = Caller { now: "2026-03-01T10:05:00Z", ..ANNA };
        let again = call(&calendar.reopen(), later, "commit", commit(&draft, 0, other)).await;
        match other {
            "a" => assert_eq!(again.unwrap(), event),
            _ => assert_eq!(code(again), "CONFLICT"),
        }
        assert!(calendar.events().rows().iter().any(|row| event["eventId"] == row.id), "the event is booked");
    }
    assert_eq!(server.files("mira/work").len(), 2);
}

/// Changes the file as if the process had died after the server's response and before booking.
fn undo_booking(file: &Path, event: &str) {
    let connection = rusqlite::Connection::open(file).unwrap();
    let changed =
        connection.execute("UPDATE events SET held_until = created WHERE id = ?1", [event]).unwrap();
    assert_eq!(changed, 1);
}

#[tokio::test]
async fn wrong_passwords_and_urls_have_different_codes() {
    let server = Radicale::start().await;
    let wrong = |change: fn(&mut Value)| {
        let mut settings = server.settings();
        change(&mut settings);
        TestCalendar::new(settings)
    };
    let unknown_user = wrong(|settings| settings["user"] = json!("eve"));
    assert_eq!(code(unknown_user.call(ANNA, "propose", half_hour(&[MIRA])).await), "FORBIDDEN");
    let nowhere = wrong(|settings| {
        let url = settings["url"].as_str().unwrap().replace("work", "none");
        settings["url"] = json!(url);
    });
    assert_eq!(code(nowhere.call(ANNA, "propose", half_hour(&[MIRA])).await), "NOT_CONFIGURED");
    let unset = wrong(|settings| settings["password_env"] = json!("NOT_SET"));
    assert_eq!(code(unset.call(ANNA, "propose", half_hour(&[MIRA])).await), "NOT_CONFIGURED");
}

#[tokio::test]
async fn an_export_is_imported_by_the_server() {
    let server = Radicale::start().await;
    let calendar = export::booked().await;
    // A whole calendar is put as a collection.
    assert_eq!(server.send("PUT", "mira/imported/", "mira", &calendar.events().to_ics()).await, 201);
    assert_eq!(server.files("mira/imported").len(), 3);
    let mut settings = server.settings();
    settings["url"] = json!(format!("{}/mira/imported/", server.url));
    let reader = TestCalendar::new(settings);
    let expected = [
        "2026-03-02T08:00:00Z 2026-03-02T08:30:00Z",
        "2026-03-03T09:00:00Z 2026-03-03T09:30:00Z",
        "2026-07-01T13:00:00Z 2026-07-01T13:30:00Z",
    ];
    assert_eq!(busy(&reader, MIRA, "2026-03-01T00:00:00Z", "2026-12-01T00:00:00Z").await, expected);
}
