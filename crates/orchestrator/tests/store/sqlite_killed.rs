//! A process is killed at random moments: what it has acknowledged is on disk, and no execution runs twice.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Backend, Claim, ClaimOutcome, Durability, Settlement, Sqlite};

use crate::audit_rules::verified;
use crate::support::{claim, envelope, idempotent, session, settlement};

/// The directory of the child process. Without it, the child's test runs alone.
const CHILD_DIRECTORY: &str = "TOOLWRIGHT_KILLED_CHILD";
const KILLS: u64 = 20;
const CALLERS: usize = 16;
const CALLS: usize = 20_000;

fn call(caller: usize, number: usize) -> Claim {
    let execution = format!("{caller}/{number}");
    // Every fourth is idempotent.
    if number % 4 == 3 { idempotent("s", &execution) } else { claim("s", &execution) }
}

fn settled(call: &Claim, run: &str) -> Settlement {
    let data = json!({"call": &*call.execution, "run": run});
    Settlement { envelope: envelope(&call.execution, data), ..settlement(call) }
}

/// A log of what a process has acknowledged, one line each.
struct AcknowledgedLog(File);

impl AcknowledgedLog {
    fn open(directory: &Path) -> Self {
        let path = directory.join("acknowledged");
        Self(OpenOptions::new().append(true).create(true).open(path).unwrap())
    }

    fn append(&self, line: &str) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// Sends all calls from the start, as retrying clients do.
async fn serve(directory: &Path, calls: usize) {
    let store = Arc::new(Sqlite::open(&directory.join("state.db"), Options::default()).unwrap());
    if store.session("s").await.unwrap().is_none() {
        store.create_session(session("s"), Durability::Committed).await.unwrap();
    }
    let acknowledged = Arc::new(AcknowledgedLog::open(directory));
    let run = std::process::id().to_string();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (store, acknowledged, run) = (Arc::clone(&store), Arc::clone(&acknowledged), run.clone());
        callers.spawn(async move {
            for number in 0..calls {
                let call = call(caller, number);
                if store.claim(call.clone()).await.unwrap() != ClaimOutcome::New {
                    continue;
                }
                acknowledged.append(&format!("new {}", call.execution));
                store.settle(settled(&call, &run)).await.unwrap();
                acknowledged.append(&format!("settled {} {run}", call.execution));
            }
        });
    }
    callers.join_all().await;
}

/// The process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_under_load() {
    match std::env::var_os(CHILD_DIRECTORY) {
        Some(directory) => serve(&PathBuf::from(directory), CALLS).await,
        None => {
            let directory = tempfile::tempdir().unwrap();
            serve(directory.path(), 20).await;
            assert_eq!(lines(directory.path()).len(), CALLERS * 20 * 2);
        }
    }
}

fn lines(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("acknowledged")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn start(directory: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sqlite_killed::a_process_under_load", "--nocapture"]);
    command.env(CHILD_DIRECTORY, directory).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Kills the child after it has acknowledged this many more bytes.
fn kill_after(mut child: Child, directory: &Path, more: usize) {
    let (path, begun) = (directory.join("acknowledged"), Instant::now());
    let length = || fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let enough = length() + more as u64;
    while length() < enough {
        assert!(begun.elapsed() < Duration::from_secs(60), "the child acknowledges nothing for a minute");
        assert!(child.try_wait().unwrap().is_none(), "the child has ended");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

async fn examine(directory: &Path) -> (usize, usize) {
    let mut runs = HashMap::new();
    let mut begun = HashMap::<String, usize>::new();
    for line in lines(directory) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["new", call] => *begun.entry(call.to_owned()).or_default() += 1,
            ["settled", call, run] => {
                assert_eq!(runs.insert(call.to_owned(), run.to_owned()), None, "{call}")
            }
            _ => panic!("{line}"),
        }
    }
    let store = Sqlite::open(&directory.join("state.db"), Options::default()).unwrap();
    let mut in_doubt = 0;
    for (execution, times) in &begun {
        let (caller, number) = execution.split_once('/').unwrap();
        let call = call(caller.parse().unwrap(), number.parse().unwrap());
        assert!(call.idempotent || *times == 1, "{execution} ran {times} times");
        match (runs.get(execution), store.claim(call.clone()).await.unwrap()) {
            (Some(run), answer) => {
                assert_eq!(
                    answer,
                    ClaimOutcome::Finished(settled(&call, run).envelope),
                    "{execution} was lost"
                );
            }
            (None, ClaimOutcome::Finished(_)) => {}
            (None, ClaimOutcome::InDoubt) => in_doubt += usize::from(!call.idempotent),
            (None, ClaimOutcome::New) => assert!(call.idempotent, "{execution} would run again"),
            (None, answer) => panic!("{execution}: {answer:?}"),
        }
    }
    let audited = verified(&store).await.len();
    assert!(audited >= runs.len(), "{audited} rows for {} settlements", runs.len());
    (runs.len(), in_doubt)
}

#[tokio::test]
async fn a_killed_process_loses_nothing_and_repeats_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut settled, mut in_doubt) = (0, 0);
    for kill in 1..=KILLS {
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        let more = 1 + usize::from(u16::from_le_bytes(random)) % 8192;
        kill_after(start(directory.path()), directory.path(), more);
        let now = examine(directory.path()).await;
        assert!(
            now.0 >= settled && now.1 >= in_doubt,
            "kill {kill}: {now:?} after {:?}",
            (settled, in_doubt)
        );
        (settled, in_doubt) = now;
        assert!(in_doubt <= CALLERS * kill as usize, "more calls are in doubt than ran");
    }
    assert!(settled > 0);
}
