//! A writer that is killed leaves what was committed last, whole.

use std::process::{Command, Stdio};
use std::time::Duration;

use toolwright_kb::passages;
use toolwright_kb::store::{Backend, Embedded, Filter, Store};

use crate::harness::{Harness, InDirectory, maker, put, record, search, vector};

const DIR: &str = "TOOLWRIGHT_TEST_KB_TO_WRITE";
/// Records of one commit.
const TOGETHER: u64 = 40;

#[test]
fn a_killed_writer_leaves_whole_commits_and_no_lock() {
    let place = InDirectory::fresh();
    place.open();
    let mut commits = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::the_writer_that_is_killed", "--nocapture"])
            .env(DIR, place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Any moment will do: a fixed set of different ones finds more than one and the same.
        std::thread::sleep(Duration::from_millis(40 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = place.open();
        let found = search(&store, "walrus", Some(&vector(1, 64)), &Filter::default(), 100_000);
        let records = store.stats().unwrap().records;
        assert_eq!(records % TOGETHER, 0, "half a commit is there");
        assert!(records / TOGETHER >= commits, "a commit was lost");
        commits = records / TOGETHER;
        assert_eq!(found.words.len() as u64, records);
        assert!(found.vectors.len() as u64 <= records);
        // The next writer goes on, and a rebuild finds nothing wrong.
        drop(store.write().unwrap());
        if round % 4 == 3 {
            store.rebuild().unwrap();
            assert_eq!(store.stats().unwrap().records, records);
        }
    }
    assert!(commits > 0, "no commit was made in time: the test shows nothing");
}

/// Runs in the child alone: commits for ever.
#[test]
fn the_writer_that_is_killed() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = Store::Embedded(Embedded::open(dir.as_ref()).unwrap());
    let first = store.stats().unwrap().records;
    for commit in 0_u64.. {
        let new: Vec<_> = (0..TOGETHER)
            .map(|at| {
                record(
                    &format!("doc:{}", first + commit * TOGETHER + at),
                    "Walrus",
                    &format!("{first} {commit} {at}"),
                )
            })
            .collect();
        put(&store, &new);
        let vectors: Vec<_> =
            new.iter().map(|record| (passages::of(record)[0].key, vector(commit, 64))).collect();
        store.write().unwrap().put_vectors(&maker(64), &vectors).unwrap();
    }
}
