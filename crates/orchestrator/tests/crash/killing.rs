//! A server is killed at random moments, while it works, while it takes up what the one before has left, and while it
//! starts.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::ledger::Ledger;
use crate::orders::{Orders, Place, Task};
use crate::plan::mixed;
use crate::process::Process;
use crate::verdict;
use crate::worker::{CALLERS, READY, STARTED};

const KILLS: u64 = 200;
/// How many calls that have an answer are sent again to each process.
const SAMPLE: usize = 24;
/// How much is written to the log before a process is killed in the middle of its work, and how long that may take.
const MOST_BYTES: u64 = 16 << 10;
const LONGEST: Duration = Duration::from_secs(5);
/// A process that was killed is known to be gone after this.
const LEASE_MS: u64 = 120;

#[test]
fn a_server_on_sqlite_that_is_killed_loses_nothing_and_repeats_nothing() {
    let directory = tempfile::tempdir().unwrap();
    torment(directory.path(), &Place::Sqlite(directory.path().join("state.db")));
}

#[test]
fn a_server_on_postgres_that_is_killed_loses_nothing_and_repeats_nothing() {
    let directory = tempfile::tempdir().unwrap();
    torment(directory.path(), &postgres(LEASE_MS));
}

/// A schema of its own on the server that the tests share.
pub fn postgres(lease_ms: u64) -> Place {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "TOOLWRIGHT_TEST_POSTGRES is not set: run ./scripts/test, or start a server with \
             `scripts/postgres start` and put the URL that it prints there"
        )
    });
    Place::Postgres { url, schema: format!("crash {} {}", std::process::id(), moment()), lease_ms }
}

fn moment() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

pub fn seed() -> u64 {
    let seed = number("TOOLWRIGHT_SEED").unwrap_or_else(moment);
    eprintln!("TOOLWRIGHT_SEED={seed}");
    seed
}

fn torment(directory: &Path, place: &Place) {
    let (begun, seed, kills) = (Instant::now(), seed(), number("TOOLWRIGHT_KILLS").unwrap_or(KILLS));
    let mut ledger = Ledger::new(seed, directory);
    let orders = |generation, task| Orders { seed, generation, place: place.clone(), task };
    for kill in 1..=kills {
        let mut again = ledger.unanswered();
        again.extend(ledger.sample(SAMPLE, mixed(seed, kill, 1)));
        let task = Task::Work { again, next: ledger.next(CALLERS) };
        let process = Process::start(directory, &orders(kill, task));
        kill_at_some_moment(process, &directory.join("log"), kill % 5, mixed(seed, kill, 2));
        ledger.read();
    }
    let killed = begun.elapsed();
    finish(directory, &mut ledger, |again, all| orders(kills + 1, Task::Finish { again, all }));
    let counts = verdict::check(&ledger, place, kills + 1);
    println!("{kills} kills in {killed:.1?}, all in {:.1?}; {counts}", begun.elapsed());
    assert!(counts.acknowledged as u64 > 5 * kills, "too little was going on to prove anything");
}

/// Of five, one is killed before it has taken anything up, or while it does; two after some time, however little has
/// happened; and two in the middle of their work, however long that takes.
fn kill_at_some_moment(process: Process, log: &Path, which: u64, random: u64) {
    if which == 0 {
        process.wait_for(STARTED);
        return process.kill_after(Duration::from_micros(random % 60_000));
    }
    process.wait_for(READY);
    if which <= 2 {
        return process.kill_after(Duration::from_micros(random % 300_000));
    }
    let length = || std::fs::metadata(log).map_or(0, |metadata| metadata.len());
    let (begun, enough) = (Instant::now(), length() + random % MOST_BYTES);
    while length() < enough && begun.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill_after(Duration::from_micros((random >> 32) % 5000));
}

/// A last process, which nobody kills.
fn finish(
    directory: &Path,
    ledger: &mut Ledger,
    orders: impl Fn(Vec<crate::orders::Left>, Vec<crate::orders::Left>) -> Orders,
) {
    // What has no answer gets one first, so that all that follows is a repetition.
    let order = orders(ledger.unanswered(), Vec::new());
    Process::start(directory, &order).wait();
    ledger.read();
    let left = ledger.unanswered();
    assert!(left.is_empty(), "still without an answer: {left:?}");
    let order = orders(Vec::new(), ledger.all());
    Process::start(directory, &order).wait();
    ledger.read();
}
