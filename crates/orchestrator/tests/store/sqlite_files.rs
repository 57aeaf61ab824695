//! The state file: its permissions, its lock, and which files are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use serde_json::json;
use toolwright_orchestrator::store::chain::Verifier;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Backend, ClaimOutcome, Durability, Error, Settlement, Sqlite};

use crate::sqlite_store::SqliteStore;
use crate::support::{claim, entry, envelope, run, session, settlement, with_session};

fn open(path: &Path) -> Result<Sqlite, Error> {
    Sqlite::open(path, Options::default())
}

/// Writes a file with some calls, and closes it.
async fn write_file(path: &Path) {
    let store = Arc::new(open(path).unwrap());
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    let calls = (0..500).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { run(&*store, claim("s", &format!("call {number}"))).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
}

/// Checks that the file is refused and not changed; returns the error.
fn open_refused(path: &Path) -> Error {
    let before = fs::read(path).unwrap();
    let error = open(path).unwrap_err();
    assert!(fs::read(path).unwrap() == before, "a refused file was changed");
    error
}

#[tokio::test]
async fn only_the_owner_can_access_the_file() {
    let (fixture, _store) = with_session::<SqliteStore>().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = fixture.path();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for name in ["state.db", "state.db-wal", "state.db-shm", "state.db.lock"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn access_of_other_users_is_removed_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    drop(open(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let _store = open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// The error of a second store on a file whose first one is named.
fn directory_with_owner(owner: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let _first = Sqlite::open(&path, Options { owner: owner.to_owned(), ..Options::default() }).unwrap();
    Sqlite::open(&path, Options::default()).unwrap_err().to_string()
}

#[tokio::test]
async fn one_process_serves_from_a_file() {
    let (fixture, store) = with_session::<SqliteStore>().await;
    let path = fixture.path();
    let Err(Error::InUse(why)) = open(&path) else { panic!("two processes serve from one file") };
    assert!(why.contains("PostgreSQL") && why.contains(&std::process::id().to_string()), "{why}");
    let named = directory_with_owner("toolwright chat");
    assert!(
        named.contains(&format!("process {} (`toolwright chat`) serves from", std::process::id())),
        "{named}"
    );
    // The first is not affected.
    run(&*store, claim("s", "call")).await;
    drop((store, fixture));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    drop(open(&path).unwrap());
    assert!(open(&path).is_ok(), "the lock ends with the store");
}

#[tokio::test]
async fn the_audit_can_be_read_beside_a_server_and_without_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let store = open(&path).unwrap();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    run(&store, claim("s", "first")).await;
    let reader = Sqlite::read_only(&path).unwrap();
    let first = reader.audit_rows(0, 10).unwrap();
    assert_eq!(first, store.audit_rows(0, 10).await.unwrap());
    run(&store, claim("s", "second")).await;
    let rows = reader.audit_rows(first[0].number, 10).unwrap();
    assert_eq!(rows.len(), 1);
    let mut verifier = Verifier::default();
    first.iter().chain(&rows).for_each(|row| verifier.check(row).unwrap());
    drop((store, reader));
    assert_eq!(Sqlite::read_only(&path).unwrap().audit_rows(0, 10).unwrap().len(), 2);
    assert!(Sqlite::read_only(&directory.path().join("none.db")).is_err());
    assert!(!directory.path().join("none.db").exists());
}

#[tokio::test]
async fn a_stopped_server_leaves_one_complete_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_file(&path).await;
    let copy = directory.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    let store = open(&copy).unwrap();
    for number in 0..500 {
        let answer = store.claim(claim("s", &format!("call {number}"))).await;
        assert!(matches!(answer, Ok(ClaimOutcome::Finished(_))), "call {number}: {answer:?}");
    }
}

#[tokio::test]
async fn a_closed_store_leaves_one_complete_file_while_others_hold_it() {
    let (fixture, store) = with_session::<SqliteStore>().await;
    run(&*store, claim("s", "call")).await;
    store.append_audit(entry("s", "relaxed")).await.unwrap();
    store.close();
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    fs::copy(fixture.path(), &copy).unwrap();
    let copied = open(&copy).unwrap();
    assert!(matches!(copied.claim(claim("s", "call")).await, Ok(ClaimOutcome::Finished(_))));
    assert_eq!(copied.audit_rows(0, 10).await.unwrap().len(), 2);
    // The lock is released, and the closed store writes nothing.
    assert!(open(&fixture.path()).is_ok());
    assert!(matches!(store.claim(claim("s", "late")).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn a_newer_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_file(&path).await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let Error::Unavailable(why) = open_refused(&path) else { panic!("another kind of error") };
    assert!(why.contains("newer") && why.contains("99"), "{why}");
    assert!(Sqlite::read_only(&path).is_err());
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    let Error::Corrupt(why) = open_refused(&path) else { panic!("another kind of error") };
    assert!(why.contains("another program"), "{why}");
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    fs::write(&path, "not a database\n".repeat(1000)).unwrap();
    assert!(matches!(open_refused(&path), Error::Corrupt(_)));
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_file(&path).await;
    let sound = fs::read(&path).unwrap();
    let mut damaged = sound.clone();
    let third = sound.len() / 3;
    damaged[third..2 * third].fill(0xFF);
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(open_refused(&path), Error::Corrupt(_)));
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    assert!(matches!(open_refused(&path), Error::Corrupt(_)));
    fs::write(&path, &sound).unwrap();
    assert!(open(&path).is_ok());
}

#[tokio::test]
async fn the_error_names_a_record_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    write_file(&path).await;
    Connection::open(&path).unwrap().execute("UPDATE sessions SET record = '{'", []).unwrap();
    let Error::Corrupt(why) = open_refused(&path) else { panic!("another kind of error") };
    assert!(why.contains("s in table sessions"), "{why}");
}

/// The log is truncated or overwritten at many places after the last acknowledged write.
#[tokio::test]
async fn a_torn_log_loses_nothing_that_was_acknowledged() {
    let (fixture, store) = with_session::<SqliteStore>().await;
    for number in 0..5 {
        run(&*store, claim("s", &format!("call {number}"))).await;
    }
    let log = fixture.path().with_file_name("state.db-wal");
    let acknowledged = fs::metadata(&log).unwrap().len() as usize;
    let last = claim("s", "last");
    assert_eq!(store.claim(last.clone()).await, Ok(ClaimOutcome::New));
    let text = json!("x".repeat(10_000));
    store.settle(Settlement { envelope: envelope("last", text), ..settlement(&last) }).await.unwrap();
    let (file, log) = (fs::read(fixture.path()).unwrap(), fs::read(&log).unwrap());
    assert!(log.len() > acknowledged);

    let mut in_doubt = 0;
    for cut in (acknowledged..log.len()).step_by(509) {
        let mut overwritten = log.clone();
        overwritten[cut..].fill(0xA5);
        for torn in [&log[..cut], &overwritten] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("state.db");
            fs::write(&path, &file).unwrap();
            fs::write(path.with_file_name("state.db-wal"), torn).unwrap();
            let store = open(&path).unwrap();
            for number in 0..5 {
                let answer = store.claim(claim("s", &format!("call {number}"))).await;
                assert!(matches!(answer, Ok(ClaimOutcome::Finished(_))), "cut at {cut}: {answer:?}");
            }
            let answer = store.claim(last.clone()).await.unwrap();
            in_doubt += usize::from(answer == ClaimOutcome::InDoubt);
            assert!(matches!(answer, ClaimOutcome::New | ClaimOutcome::InDoubt), "cut at {cut}: {answer:?}");
        }
    }
    assert!(in_doubt > 0, "no cut was between claim and settlement");
}
