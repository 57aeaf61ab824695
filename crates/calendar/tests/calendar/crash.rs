//! Processes that are killed during commits: every reported event exists, each draft became at most one event, and no
//! time is booked twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chrono::DateTime;
use serde_json::{Value, json};

use crate::fake_zoom::FakeZoom;
use crate::radicale::Radicale;
use crate::support::{ANNA, Caller, JON, MIRA, TestCalendar, call, code, commit, half_hour, open};

const FILE: &str = "TOOLWRIGHT_TEST_CALENDAR";
const SETTINGS: &str = "TOOLWRIGHT_TEST_SETTINGS";

/// Proposes and commits until it is killed, and prints each booked event. Does nothing without the environment
/// variables that the tests below set.
#[test]
fn worker() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let settings = serde_json::from_str(&std::env::var(SETTINGS).unwrap()).unwrap();
    let calendar = open(Path::new(&file), &settings);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for round in 0_usize.. {
            let attendees: &[&str] = if round % 2 == 0 { &[MIRA] } else { &[MIRA, JON] };
            let mut request = half_hour(attendees);
            request["windowEnd"] = json!("2027-02-28T00:00:00Z");
            let proposal = call(&calendar, ANNA, "propose", request).await.unwrap();
            let draft = proposal["draftId"].as_str().unwrap();
            let execution = format!("{}-{round}", std::process::id());
            println!("\ntrying {draft} {execution}");
            match call(&calendar, ANNA, "commit", commit(draft, 0, &execution)).await {
                Ok(event) => println!("\nbooked {draft} {execution} {event}"),
                Err(error) => assert_eq!(error.code, "CONFLICT", "{error}"),
            }
        }
    });
}

/// The output of the workers before they were killed.
#[derive(Debug, Default)]
struct WorkerLog {
    /// The execution of each draft.
    tried: BTreeMap<String, String>,
    booked: BTreeMap<String, Value>,
}

/// Runs two workers at a time on one file, and kills each after another delay.
fn run_and_kill_all(calendar: &TestCalendar, kills: u64, timeout: Duration) -> WorkerLog {
    let mut log = WorkerLog::default();
    std::thread::scope(|scope| {
        let lanes = [0, 1].map(|lane| {
            let moments = (0..kills / 2)
                .map(move |kill| timeout.mul_f64(((kill * 2 + lane) * 7919 % 1000) as f64 / 1000.0));
            scope.spawn(move || moments.flat_map(|delay| run_and_kill(calendar, delay)).collect::<Vec<_>>())
        });
        for line in lanes.into_iter().flat_map(|lane| lane.join().unwrap()) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let (draft, execution) = (words[1].to_owned(), words[2].to_owned());
            if words[0] == "booked" {
                log.booked.insert(draft, serde_json::from_str(words[3]).unwrap());
            } else {
                log.tried.insert(draft, execution);
            }
        }
    });
    log
}

fn run_and_kill(calendar: &TestCalendar, delay: Duration) -> Vec<String> {
    let mut worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::worker", "--nocapture"])
        .env(FILE, calendar.file())
        .env(SETTINGS, calendar.settings().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines().map_while(Result::ok);
    // Waits until it runs.
    let mut log: Vec<String> = lines.by_ref().find(|line| line.starts_with("trying")).into_iter().collect();
    std::thread::sleep(delay);
    worker.kill().unwrap();
    worker.wait().unwrap();
    log.extend(lines.filter(|line| line.starts_with("trying") || line.starts_with("booked")));
    log
}

/// Repeats all calls: reported ones return the same event, others succeed or are conflicts. Then no event is lost, and
/// Mira, who attends all of them, has no two at a time. Returns the number of events.
async fn repeat_calls(calendar: &TestCalendar, log: &WorkerLog) -> usize {
    assert!(!log.tried.is_empty() && !log.booked.is_empty(), "{log:?}");
    let before = calendar.events().to_json();
    for (draft, execution) in &log.tried {
        let later = Caller { now: "2026-03-01T10:05:00Z", ..ANNA };
        let again = calendar.call(later, "commit", commit(draft, 0, execution)).await;
        match log.booked.get(draft) {
            Some(event) => assert_eq!(&again.unwrap(), event),
            None => assert!(again.is_ok() || code(again) == "CONFLICT"),
        }
    }
    let after = calendar.events().to_json();
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert!(before.iter().all(|event| after.contains(event)));
    let at = |event: &Value, name: &str| {
        DateTime::parse_from_rfc3339(event[name].as_str().unwrap()).unwrap().to_utc()
    };
    assert!(after.windows(2).all(|pair| at(&pair[0], "end") <= at(&pair[1], "start")), "two events overlap");
    let (tried, booked) = (log.tried.len(), log.booked.len());
    println!(
        "{tried} drafts tried, {booked} reported, {} events before and {} after",
        before.len(),
        after.len()
    );
    after.len()
}

#[tokio::test]
async fn killed_processes_lose_no_reported_event_and_book_no_time_twice() {
    let calendar = TestCalendar::new(json!({ "working_hours": "00:00-24:00" }));
    let log = run_and_kill_all(&calendar, 40, Duration::from_millis(40));
    repeat_calls(&calendar, &log).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_leave_one_resource_and_one_meeting_for_each_event() {
    let (server, zoom) = (Radicale::start().await, FakeZoom::start().await);
    let mut settings = server.settings();
    settings["zoom"] = zoom.settings()["zoom"].clone();
    settings["working_hours"] = json!("00:00-24:00");
    let calendar = TestCalendar::new(settings);
    let log = tokio::task::block_in_place(|| run_and_kill_all(&calendar, 30, Duration::from_millis(250)));
    let events = repeat_calls(&calendar, &log).await;
    assert_eq!(server.files("mira/work").len(), events);
    let meetings = zoom.state.lock().unwrap().meetings.clone();
    assert_eq!(meetings.len(), events);
    let links: BTreeSet<_> = meetings.iter().map(|meeting| meeting["join_url"].as_str().unwrap()).collect();
    let rows = calendar.events().rows();
    assert_eq!(rows.iter().map(|row| row.conference.as_deref().unwrap()).collect::<BTreeSet<_>>(), links);
}
