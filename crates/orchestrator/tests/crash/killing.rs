//! A server is killed at random moments: while it runs calls, while it resumes those of the process before, and while
//! it starts.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::guarantees;
use crate::instructions::{Instructions, StoreLocation, Task};
use crate::ledger::Ledger;
use crate::plan::hash_of;
use crate::process::Process;
use crate::worker::{CALLERS, READY, STARTED};

const KILLS: u64 = 200;
/// How many calls with a result are sent again to each process.
const SAMPLE: usize = 24;
/// How much is written to the log before a process is killed, and how long that may take.
const MAX_LOG_BYTES: u64 = 16 << 10;
const LOG_TIMEOUT: Duration = Duration::from_secs(5);
/// A killed process counts as dead after this.
const LEASE_MS: u64 = 120;

#[test]
fn a_server_on_sqlite_that_is_killed_loses_nothing_and_repeats_nothing() {
    let directory = tempfile::tempdir().unwrap();
    kill_repeatedly(directory.path(), &StoreLocation::Sqlite(directory.path().join("state.db")));
}

#[test]
fn a_server_on_postgres_that_is_killed_loses_nothing_and_repeats_nothing() {
    let directory = tempfile::tempdir().unwrap();
    kill_repeatedly(directory.path(), &postgres(LEASE_MS));
}

/// A schema of its own on the server that the tests share.
pub fn postgres(lease_ms: u64) -> StoreLocation {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "TOOLWRIGHT_TEST_POSTGRES is not set: run ./scripts/test, or start a server with \
             `scripts/postgres start` and put the URL that it prints there"
        )
    });
    StoreLocation::Postgres { url, schema: format!("crash {} {}", std::process::id(), moment()), lease_ms }
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

fn kill_repeatedly(directory: &Path, location: &StoreLocation) {
    let (begun, seed, kills) = (Instant::now(), seed(), number("TOOLWRIGHT_KILLS").unwrap_or(KILLS));
    let mut ledger = Ledger::new(seed, directory);
    let instructions = |generation, task| Instructions { seed, generation, location: location.clone(), task };
    for kill in 1..=kills {
        let mut again = ledger.unanswered();
        again.extend(ledger.sample(SAMPLE, hash_of(seed, kill, 1)));
        let task = Task::Work { again, next: ledger.next(CALLERS) };
        let process = Process::start(directory, &instructions(kill, task));
        kill_at_some_moment(process, &directory.join("log"), kill % 5, hash_of(seed, kill, 2));
        ledger.read();
    }
    let killed = begun.elapsed();
    finish(directory, &mut ledger, |again, all| instructions(kills + 1, Task::Finish { again, all }));
    let counts = guarantees::check(&ledger, location, kills + 1);
    println!("{kills} kills in {killed:.1?}, all in {:.1?}; {counts}", begun.elapsed());
    assert!(counts.acknowledged as u64 > 5 * kills, "too few calls were acknowledged to prove anything");
}

/// Of five processes, one is killed while it starts or resumes calls, two after a random time, and two after a random
/// amount of work.
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
    let (begun, enough) = (Instant::now(), length() + random % MAX_LOG_BYTES);
    while length() < enough && begun.elapsed() < LOG_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill_after(Duration::from_micros((random >> 32) % 5000));
}

/// Two last processes, which are not killed.
fn finish(
    directory: &Path,
    ledger: &mut Ledger,
    instructions: impl Fn(Vec<crate::instructions::SentCall>, Vec<crate::instructions::SentCall>) -> Instructions,
) {
    // First the calls without a result, so that everything after is a replay.
    let order = instructions(ledger.unanswered(), Vec::new());
    Process::start(directory, &order).wait();
    ledger.read();
    let left = ledger.unanswered();
    assert!(left.is_empty(), "still without a result: {left:?}");
    let order = instructions(Vec::new(), ledger.all());
    Process::start(directory, &order).wait();
    ledger.read();
}
