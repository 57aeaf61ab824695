//! A killed writer leaves the last commit intact.

use std::process::{Command, Stdio};
use std::time::Duration;

use toolwright_kb::passages;
use toolwright_kb::store::{Embedded, Filter};

use crate::support::{EmbeddedFixture, Store, StoreFixture, embedder_id, put, record, search, vector};

const DIR_VARIABLE: &str = "TOOLWRIGHT_TEST_KB_TO_WRITE";
/// The number of records in a commit.
const COMMIT_SIZE: u64 = 40;

#[test]
fn a_killed_writer_leaves_complete_commits_and_no_lock() {
    let fixture = EmbeddedFixture::new();
    fixture.open();
    let mut commits = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::writer_process", "--nocapture"])
            .env(DIR_VARIABLE, fixture.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Different moments find more than one fixed moment.
        std::thread::sleep(Duration::from_millis(40 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = fixture.open();
        let found = search(&store, "walrus", Some(&vector(1, 64)), &Filter::default(), 100_000);
        let records = store.stats().unwrap().records;
        assert_eq!(records % COMMIT_SIZE, 0, "a commit is incomplete");
        assert!(records / COMMIT_SIZE >= commits, "a commit was lost");
        commits = records / COMMIT_SIZE;
        assert_eq!(found.keyword.len() as u64, records);
        assert!(found.vector.len() as u64 <= records);
        // The lock is free, and a rebuild succeeds.
        drop(store.begin_write().unwrap());
        if round % 4 == 3 {
            store.rebuild().unwrap();
            assert_eq!(store.stats().unwrap().records, records);
        }
    }
    assert!(commits > 0, "no writer committed before it was killed");
}

/// Runs in the child process only: commits in an endless loop.
#[test]
fn writer_process() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else { return };
    let store: Store = Box::new(Embedded::open(dir.as_ref()).unwrap());
    let first = store.stats().unwrap().records;
    for commit in 0_u64.. {
        let new: Vec<_> = (0..COMMIT_SIZE)
            .map(|at| {
                record(
                    &format!("doc:{}", first + commit * COMMIT_SIZE + at),
                    "Walrus",
                    &format!("{first} {commit} {at}"),
                )
            })
            .collect();
        put(&store, &new);
        let vectors: Vec<_> =
            new.iter().map(|record| (passages::split_record(record)[0].key, vector(commit, 64))).collect();
        store.begin_write().unwrap().put_vectors(&embedder_id(64), &vectors).unwrap();
    }
}
