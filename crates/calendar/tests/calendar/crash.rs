//! Processes that are killed in the middle of commits: what was answered is there, each draft became one event at most,
//! and no time was taken twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chrono::DateTime;
use serde_json::{Value, json};

use crate::desk::{ANNA, By, Desk, JON, MIRA, ask, code, commit, half_hour, open};
use crate::radicale::Radicale;
use crate::zoom_api::ZoomApi;

const FILE: &str = "TOOLWRIGHT_TEST_CALENDAR";
const SETTINGS: &str = "TOOLWRIGHT_TEST_SETTINGS";

/// Proposes and commits for as long as it is let; each event that was answered is a line. Does nothing unless it is told
/// where, which only the tests below do.
#[test]
fn worker() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let settings = serde_json::from_str(&std::env::var(SETTINGS).unwrap()).unwrap();
    let calendar = open(Path::new(&file), &settings);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for round in 0_usize.. {
            let who: &[&str] = if round % 2 == 0 { &[MIRA] } else { &[MIRA, JON] };
            let mut wish = half_hour(who);
            wish["windowEnd"] = json!("2027-02-28T00:00:00Z");
            let proposal = ask(&calendar, ANNA, "propose", wish).await.unwrap();
            let draft = proposal["draftId"].as_str().unwrap();
            let execution = format!("{}-{round}", std::process::id());
            println!("\ntrying {draft} {execution}");
            match ask(&calendar, ANNA, "commit", commit(draft, 0, &execution)).await {
                Ok(event) => println!("\nbooked {draft} {execution} {event}"),
                Err(fault) => assert_eq!(fault.code, "CONFLICT", "{fault}"),
            }
        }
    });
}

/// What workers did until they were killed.
#[derive(Debug, Default)]
struct Said {
    /// The execution of each draft.
    tried: BTreeMap<String, String>,
    booked: BTreeMap<String, Value>,
}

/// Lets two workers at a time work on one file, and kills them at ever other moments.
fn kill(desk: &Desk, kills: u64, within: Duration) -> Said {
    let mut said = Said::default();
    std::thread::scope(|scope| {
        let lanes = [0, 1].map(|lane| {
            let moments = (0..kills / 2)
                .map(move |kill| within.mul_f64(((kill * 2 + lane) * 7919 % 1000) as f64 / 1000.0));
            scope.spawn(move || moments.flat_map(|delay| run_and_kill(desk, delay)).collect::<Vec<_>>())
        });
        for line in lanes.into_iter().flat_map(|lane| lane.join().unwrap()) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let (draft, execution) = (words[1].to_owned(), words[2].to_owned());
            if words[0] == "booked" {
                said.booked.insert(draft, serde_json::from_str(words[3]).unwrap());
            } else {
                said.tried.insert(draft, execution);
            }
        }
    });
    said
}

fn run_and_kill(desk: &Desk, delay: Duration) -> Vec<String> {
    let mut worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::worker", "--nocapture"])
        .env(FILE, desk.file())
        .env(SETTINGS, desk.settings().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines().map_while(Result::ok);
    // It is at work.
    let mut said: Vec<String> = lines.by_ref().find(|line| line.starts_with("trying")).into_iter().collect();
    std::thread::sleep(delay);
    worker.kill().unwrap();
    worker.wait().unwrap();
    said.extend(lines.filter(|line| line.starts_with("trying") || line.starts_with("booked")));
    said
}

/// The same calls again: those that were answered get the same event, the others get one or lose their time. Then no
/// event is lost, and Mira, who is in all of them, is nowhere twice at a time. Gives the number of events.
async fn settle(desk: &Desk, said: &Said) -> usize {
    assert!(!said.tried.is_empty() && !said.booked.is_empty(), "{said:?}");
    let before = desk.listing().to_json();
    for (draft, execution) in &said.tried {
        let later = By { now: "2026-03-01T10:05:00Z", ..ANNA };
        let again = desk.ask(later, "commit", commit(draft, 0, execution)).await;
        match said.booked.get(draft) {
            Some(event) => assert_eq!(&again.unwrap(), event),
            None => assert!(again.is_ok() || code(again) == "CONFLICT"),
        }
    }
    let after = desk.listing().to_json();
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert!(before.iter().all(|event| after.contains(event)));
    let at = |event: &Value, name: &str| {
        DateTime::parse_from_rfc3339(event[name].as_str().unwrap()).unwrap().to_utc()
    };
    assert!(after.windows(2).all(|pair| at(&pair[0], "end") <= at(&pair[1], "start")), "two events overlap");
    let (tried, answered) = (said.tried.len(), said.booked.len());
    println!(
        "{tried} drafts tried, {answered} answered, {} events before and {} after",
        before.len(),
        after.len()
    );
    after.len()
}

#[tokio::test]
async fn killed_processes_lose_nothing_that_was_answered_and_book_nothing_twice() {
    let desk = Desk::new(json!({ "working_hours": "00:00-24:00" }));
    let said = kill(&desk, 40, Duration::from_millis(40));
    settle(&desk, &said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_leave_one_resource_and_one_meeting_an_event() {
    let (server, zoom) = (Radicale::start().await, ZoomApi::start().await);
    let mut settings = server.settings();
    settings["zoom"] = zoom.settings()["zoom"].clone();
    settings["working_hours"] = json!("00:00-24:00");
    let desk = Desk::new(settings);
    let said = tokio::task::block_in_place(|| kill(&desk, 30, Duration::from_millis(250)));
    let events = settle(&desk, &said).await;
    assert_eq!(server.files("mira/work").len(), events);
    let meetings = zoom.state.lock().unwrap().meetings.clone();
    assert_eq!(meetings.len(), events);
    let links: BTreeSet<_> = meetings.iter().map(|meeting| meeting["join_url"].as_str().unwrap()).collect();
    let rows = desk.listing().rows();
    assert_eq!(rows.iter().map(|row| row.conference.as_deref().unwrap()).collect::<BTreeSet<_>>(), links);
}
