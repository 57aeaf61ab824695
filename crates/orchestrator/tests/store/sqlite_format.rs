//! The contents of the file: rows of many audit entries, one row for a call, migration of the first version.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use toolwright_orchestrator::store::chain::{ChainError, Verifier};
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{
    AuditRow, Backend, Claim, ClaimOutcome, Durability, ExecutionStatus, Settlement, Sqlite, chain,
};

use crate::support::{claim, entry, envelope, idempotent, session, settlement, status};

fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, Options::default()).unwrap()
}

/// Writes a file with this many audit entries, most of them in rows of many.
async fn write_entries(path: &Path, count: usize) {
    let store = open(path);
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    for number in 0..count {
        store.append_audit(entry("s", &format!("call {number}"))).await.unwrap();
    }
    store.flush().await.unwrap();
}

fn verify(rows: &[AuditRow]) -> Result<(), ChainError> {
    let mut verifier = Verifier::default();
    rows.iter().try_for_each(|row| verifier.check(row))
}

#[tokio::test]
async fn an_audit_row_holds_many_entries_which_are_read_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_entries(&path, 1000).await;
    let rows: u32 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM audit", [], |row| row.get(0))
        .unwrap();
    assert!(rows < 500, "{rows} rows");
    let store = open(&path);
    let all = store.audit_rows(0, 5000).await.unwrap();
    assert_eq!(all.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=1000).collect::<Vec<_>>());
    verify(&all).unwrap();
    for (after, limit) in [(0, 1), (1, 1), (255, 3), (256, 300), (511, 2), (998, 10), (1000, 10), (5000, 1)] {
        let end = (after + limit).min(all.len());
        assert_eq!(
            store.audit_rows(after as u64, limit).await.unwrap(),
            all[after.min(end)..end],
            "after {after}"
        );
    }
    // The next process continues the chain.
    store.append_audit(entry("s", "later")).await.unwrap();
    store.flush().await.unwrap();
    verify(&store.audit_rows(0, 5000).await.unwrap()).unwrap();
}

/// Replaces compressed entries by text, which is read too.
fn decompress_file(path: &Path) {
    let file = Connection::open(path).unwrap();
    let mut compressed =
        file.prepare("SELECT number, entry FROM audit WHERE typeof(entry) = 'blob'").unwrap();
    let rows =
        compressed.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))).unwrap();
    let rows: Vec<_> = rows.map(Result::unwrap).collect();
    assert!(!rows.is_empty());
    for (number, bytes) in rows {
        let text = String::from_utf8(lz4_flex::decompress_size_prepended(&bytes).unwrap()).unwrap();
        file.execute("UPDATE audit SET entry = ?2 WHERE number = ?1", (number, text)).unwrap();
    }
}

#[tokio::test]
async fn corrupt_compressed_entries_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_entries(&path, 300).await;
    let file = Connection::open(&path).unwrap();
    let cut = "UPDATE audit SET entry = substr(entry, 1, length(entry) / 2) WHERE typeof(entry) = 'blob'";
    assert!(file.execute(cut, []).unwrap() > 0);
    drop(file);
    let read = Sqlite::read_only(&path).unwrap().audit_rows(0, 5000);
    assert!(read.is_err(), "{read:?}");
}

#[tokio::test]
async fn an_edit_of_any_entry_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_entries(&path, 300).await;
    let changes = [
        "UPDATE audit SET entry = replace(entry, '\"call 7\"', '\"call x\"')",
        "UPDATE audit SET entry = replace(entry, '\"call 299\"', '\"call x\"')",
        "UPDATE audit SET entry = substr(entry, instr(entry, char(10)) + 1) WHERE instr(entry, char(10)) > 0",
        "UPDATE audit SET entry = entry || char(10) || entry",
        "UPDATE audit SET position = position + 1",
    ];
    for sql in changes {
        let copy = directory.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        decompress_file(&copy);
        assert_eq!(verify(&Sqlite::read_only(&copy).unwrap().audit_rows(0, 5000).unwrap()), Ok(()));
        assert!(Connection::open(&copy).unwrap().execute(sql, []).unwrap() > 0);
        let rows = Sqlite::read_only(&copy).unwrap().audit_rows(0, 5000).unwrap();
        assert!(verify(&rows).is_err(), "{sql}");
    }
}

#[tokio::test]
async fn a_claim_that_is_settled_in_the_same_batch_is_one_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    {
        let store = open(&path);
        store.create_session(session("s"), Durability::Committed).await.unwrap();
        for name in ["done", "begun"] {
            let call = Claim { durability: Durability::Relaxed, ..idempotent("s", name) };
            assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
            if name == "done" {
                let settled = Settlement { durability: Durability::Relaxed, ..settlement(&call) };
                store.settle(settled).await.unwrap();
            }
        }
        store.flush().await.unwrap();
    }
    let file = Connection::open(&path).unwrap();
    let sql = "SELECT group_concat(execution || ' ' || (envelope IS NOT NULL), ', ')
        FROM (SELECT * FROM calls ORDER BY number)";
    let rows: String = file.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, "done 1, begun 0");
}

/// The schema of the first version.
const SCHEMA_VERSION_1: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY NOT NULL, record TEXT NOT NULL);
    CREATE TABLE claims (number INTEGER PRIMARY KEY, session TEXT NOT NULL, execution TEXT NOT NULL,
        digest BLOB NOT NULL, idempotent INTEGER NOT NULL, turn INTEGER, at INTEGER NOT NULL);
    CREATE TABLE envelopes (number INTEGER PRIMARY KEY, envelope TEXT NOT NULL);
    CREATE TABLE confirmations (id TEXT PRIMARY KEY NOT NULL, record TEXT NOT NULL);
    CREATE TABLE audit (number INTEGER PRIMARY KEY, chain TEXT NOT NULL, position INTEGER NOT NULL,
        previous BLOB NOT NULL, hash BLOB NOT NULL, entry TEXT NOT NULL);
    PRAGMA application_id = 1417114228;
    PRAGMA user_version = 1;
";

#[tokio::test]
async fn a_file_of_the_first_version_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let done = envelope("done", serde_json::json!({"n": 1}));
    {
        let file = Connection::open(&path).unwrap();
        file.execute_batch(SCHEMA_VERSION_1).unwrap();
        let record = serde_json::to_string(&session("s")).unwrap();
        file.execute("INSERT INTO sessions VALUES ('s', ?1)", [record]).unwrap();
        let row = "INSERT INTO claims VALUES (?1, 's', ?2, ?3, ?4, NULL, ?5)";
        for (number, name, may_repeat) in [(4, "done", false), (5, "begun", true), (6, "doubtful", false)] {
            let call = claim("s", name);
            file.execute(row, (number, name, call.digest.as_slice(), may_repeat, call.now)).unwrap();
        }
        let text = serde_json::to_string(&*done).unwrap();
        file.execute("INSERT INTO envelopes VALUES (4, ?1)", [text]).unwrap();
        let mut chain = chain::Chain::new("old");
        for number in 1..=2_i64 {
            let text = chain::text(&entry("s", &format!("call {number}")));
            let previous = chain.head();
            chain.link(&text);
            let row = (number, "old", number, previous, chain.head(), text);
            file.execute("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).unwrap();
        }
    }
    let store = Arc::new(open(&path));
    assert_eq!(status(&*store, "s", "done").await, Some(ExecutionStatus::Finished(done)));
    assert_eq!(status(&*store, "s", "begun").await, Some(ExecutionStatus::Abandoned));
    assert_eq!(status(&*store, "s", "doubtful").await, Some(ExecutionStatus::InDoubt));
    store.append_audit(entry("s", "new")).await.unwrap();
    store.flush().await.unwrap();
    let rows = store.audit_rows(0, 10).await.unwrap();
    assert_eq!(rows.len(), 3);
    verify(&rows).unwrap();
}
