//! Processes that are killed in the middle of commits: what was answered is there, each draft became one event at most,
//! and no time was taken twice.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::desk::{ANNA, Desk, JON, MIRA, ask, code, commit, half_hour, open};

const FILE: &str = "TOOLWRIGHT_TEST_CALENDAR";
const KILLS: usize = 40;

/// Proposes and commits for as long as it is let; each event that was answered is a line. Does nothing unless it is told
/// where, which only the test below does.
#[test]
fn worker() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let settings = json!({ "people": ["@studio.example"], "working_hours": "00:00-24:00" });
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

/// What one worker said until it was killed.
fn run_and_kill(file: &Path, delay: Duration) -> Vec<String> {
    let mut worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::worker", "--nocapture"])
        .env(FILE, file)
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

#[tokio::test]
async fn killed_processes_lose_nothing_that_was_answered_and_book_nothing_twice() {
    let desk = Desk::new(json!({ "working_hours": "00:00-24:00" }));
    let (mut tried, mut booked) = (BTreeMap::new(), BTreeMap::new());
    std::thread::scope(|scope| {
        // Two at a time, on one file.
        let lanes = [0, 1].map(|lane| {
            let file = desk.file();
            scope.spawn(move || {
                let delay = |kill: usize| {
                    Duration::from_micros(u64::try_from(kill * 7919 % 40_000 + lane * 137).unwrap())
                };
                (0..KILLS / 2).flat_map(|kill| run_and_kill(&file, delay(kill))).collect::<Vec<_>>()
            })
        });
        for line in lanes.into_iter().flat_map(|lane| lane.join().unwrap()) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let (draft, execution) = (words[1].to_owned(), words[2].to_owned());
            if words[0] == "booked" {
                booked.insert(draft, serde_json::from_str::<Value>(words[3]).unwrap());
            } else {
                tried.insert(draft, execution);
            }
        }
    });
    assert!(tried.len() > KILLS && !booked.is_empty(), "{} tried, {} booked", tried.len(), booked.len());
    let before = desk.listing().to_json();
    // The same calls again: those that were answered get the same event, the others get one or lose their time.
    for (draft, execution) in &tried {
        let again = desk.ask(ANNA, "commit", commit(draft, 0, execution)).await;
        match booked.get(draft) {
            Some(event) => assert_eq!(&again.unwrap(), event),
            None => assert!(again.is_ok() || code(again) == "CONFLICT"),
        }
    }
    let after = desk.listing().to_json();
    assert!(before.as_array().unwrap().iter().all(|event| after.as_array().unwrap().contains(event)));
    let mut times: Vec<(DateTime<Utc>, DateTime<Utc>)> = Vec::new();
    for event in after.as_array().unwrap() {
        let at = |name: &str| DateTime::parse_from_rfc3339(event[name].as_str().unwrap()).unwrap().to_utc();
        times.push((at("start"), at("end")));
    }
    // Mira is in all of them.
    assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two events overlap");
    println!(
        "{} kills, {} drafts tried, {} answered, {} events",
        KILLS,
        tried.len(),
        booked.len(),
        times.len()
    );
}
