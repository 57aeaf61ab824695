//! Stores that an earlier version has written are opened with everything in them.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolwright_contract::Principal;
use toolwright_orchestrator::store::chain::Verifier;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{
    Backend, ClaimOutcome, ConfirmationStatus, ConversationLog, Durability, ExecutionStatus, LogEntry,
    LogOpening, MeterScope, RETRIEVAL_METER, SessionStatus, Sqlite,
};

use crate::postgres_store::{Database, holds};
use crate::support::{ALL, claim, entry, over_budget, retrieval, session, status};

/// Version 3 of the file, written by the last Toolwright that stored blocks as sessions and had no meters.
const STATE_VERSION_3: &str = "tests/fixtures/state-version-3.db";
/// Version 5 of the file: blocks and meters, but neither toolsets nor conversations.
const STATE_VERSION_5: &str = "tests/fixtures/state-version-5.db";
/// When those files were written.
const WRITTEN_AT: i64 = 1_000_000;

fn principal(id: &str) -> Principal {
    Principal { id: id.to_owned(), org: Some("studio".to_owned()), roles: Vec::new() }
}

/// Opens a file of an earlier version, twice: the second time it is a file of today. Returns its path.
async fn check_file(fixture: &str, directory: &Path) -> PathBuf {
    let path = directory.join("state.db");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture), &path).unwrap();
    let old = Sqlite::read_only(&path).unwrap_err().to_string();
    assert!(old.contains("older Toolwright"), "{old}");
    for _ in 0..2 {
        let store = Sqlite::open(&path, Options::default()).unwrap();
        check_sessions(&store).await;
        check_executions(&store).await;
        check_confirmations(&store).await;
        check_blocks(&store).await;
        check_audit(&store).await;
    }
    assert_eq!(Sqlite::read_only(&path).unwrap().audit_rows(0, 1000).unwrap().len(), 105);
    path
}

#[tokio::test]
async fn a_file_of_version_3_is_opened_with_everything_in_it() {
    let directory = tempfile::tempdir().unwrap();
    check_file(STATE_VERSION_3, directory.path()).await;
}

#[tokio::test]
async fn a_file_of_version_5_is_opened_with_everything_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = check_file(STATE_VERSION_5, directory.path()).await;
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let metered = store.session("sess_metered").await.unwrap().unwrap();
    assert_eq!(metered.spent.get(MeterScope::Turn, RETRIEVAL_METER), 1);
    assert_eq!(store.claim(retrieval("sess_metered", "first", 2)).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(retrieval("sess_metered", "second", 2)).await, Ok(over_budget(2)));
    // Its sessions may have conversations from now on.
    assert_eq!(store.log_entries("sess_before", 0, 10).await, Ok(vec![]));
    assert_eq!(store.open_log("sess_before", "w").await, Ok(LogOpening::Opened { end: 0 }));
    let said = LogEntry { position: 1, body: "said".into() };
    assert_eq!(
        store.append_log("sess_before", "w", vec![said.clone()], Durability::Committed).await,
        Ok(true)
    );
    assert_eq!(store.log_entries("sess_before", 0, 10).await, Ok(vec![said]));
    assert_eq!(store.toolsets().await, Ok(vec![]));
}

async fn check_sessions(store: &Sqlite) {
    let session = store.session("sess_before").await.unwrap().unwrap();
    assert_eq!((session.turn, session.status), (1, SessionStatus::Active));
    assert_eq!((&session.principal, session.client_id.as_str()), (&principal("mira"), "phone"));
    // The claims of the turn count, which the record did not.
    assert_eq!(session.spent.get(MeterScope::Turn, RETRIEVAL_METER), 2);
    assert_eq!(store.claim(retrieval("sess_before", "more", 2)).await, Ok(over_budget(2)));
}

async fn check_executions(store: &Sqlite) {
    assert_eq!(status(store, "sess_before", "in doubt").await, Some(ExecutionStatus::InDoubt));
    assert_eq!(status(store, "sess_before", "abandoned").await, Some(ExecutionStatus::Abandoned));
    for execution in ["finished", "b1"] {
        let Some(ExecutionStatus::Finished(envelope)) = status(store, "sess_before", execution).await else {
            panic!("{execution} was finished");
        };
        assert_eq!(*envelope.outcome.as_ref().unwrap().data, json!("done"));
    }
}

async fn check_confirmations(store: &Sqlite) {
    let pending = store.pending_confirmations(ALL).await.unwrap();
    assert_eq!(pending.iter().map(|pending| pending.id.as_str()).collect::<Vec<_>>(), ["pending"]);
    assert_eq!(pending[0].args, json!({"to": "ada", "secret": "hidden"}));
    assert_eq!(pending[0].redacted_args, Some(json!({"to": "ada", "secret": "(hidden)"})));
    let approved = store.approved_confirmations().await.unwrap();
    assert_eq!(approved.iter().map(|approved| approved.id.as_str()).collect::<Vec<_>>(), ["approved"]);
    assert_eq!(approved[0].status, ConfirmationStatus::Approved);
    assert_eq!((approved[0].decided_by.as_deref(), approved[0].is_edited), (Some("ada"), true));
}

async fn check_blocks(store: &Sqlite) {
    for (user, client, seconds) in [("mira", "phone", 60), ("jon", "größe", 90), ("jon", "nul\0byte", 90)] {
        let until = store.blocked_until(&principal(user), client).await;
        assert_eq!(until, Ok(Some(WRITTEN_AT + seconds * 1000)), "{client:?}");
    }
    assert_eq!(store.session("block_06studio04mira05phone").await, Ok(None));
}

async fn check_audit(store: &Sqlite) {
    let rows = store.audit_rows(0, 1000).await.unwrap();
    let mut verifier = Verifier::default();
    rows.iter().for_each(|row| verifier.check(row).unwrap());
    assert_eq!(verifier.rows, 105);
}

/// The schema before blocks had their own table and budgets were meters.
const SCHEMA_VERSION_1: &str = include_str!("../../src/store/postgres/migrations/0001.sql");

/// Writes what a server of version 1 would have written.
async fn write_version_1(database: &Database) {
    let client = database.client().await;
    let schema = database.schema.replace('"', "\"\"");
    let version = "CREATE TABLE migration (version integer PRIMARY KEY,
            applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
        INSERT INTO migration (version) VALUES (1);";
    client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"; {version} {SCHEMA_VERSION_1}")).await.unwrap();
    let insert = "INSERT INTO session (id, record, turn, retrievals, standing, expires_at, revision)
        VALUES ($1, $2, $3, $4, 'active', $5, 0)";
    let version_1 = |id: &str, client_id: &str, toolset: &str, retrievals: i64| {
        let mut record = serde_json::to_value(session(id)).unwrap();
        record.as_object_mut().unwrap().remove("spent");
        record["retrievals"] = retrievals.into();
        (record["client_id"], record["toolset"]) = (client_id.into(), toolset.into());
        record.to_string()
    };
    let expires_at = session("s").expires_at;
    for (id, client_id, toolset, turn, retrievals) in [
        ("s", "client", "1.0.abcdef12", 3_i64, 2_i64),
        ("block_09analytics03ada05phone", "phone", "", 0, 0),
        ("block_x97011bc352958b3ec9aa8d1edeb25b7d", "nul\0byte", "", 0, 0),
    ] {
        let record = version_1(id, client_id, toolset, retrievals);
        client.execute(insert, &[&id, &record, &turn, &retrievals, &expires_at]).await.unwrap();
    }
    let execution = "INSERT INTO execution
            (session, id, tool, tool_version, digest, idempotent, owner, attempt, claimed_at)
        VALUES ('s', 'old', 'mail_send', '1.2.0', $1, true, 'gone', 1, 1)";
    client.execute(execution, &[&claim("s", "old").digest.as_slice()]).await.unwrap();
}

#[tokio::test]
async fn a_database_of_version_1_is_migrated() {
    let database = Database::new();
    write_version_1(&database).await;
    let ada = session("s").principal;
    let until = session("s").expires_at;
    for _ in 0..2 {
        let process = database.open().await;
        let store = &process.store;
        let migrated = store.session("s").await.unwrap().unwrap();
        assert_eq!((migrated.turn, migrated.spent.get(MeterScope::Turn, RETRIEVAL_METER)), (3, 2));
        assert_eq!(store.claim(retrieval("s", "more", 2)).await, Ok(over_budget(2)));
        assert_eq!(status(&**store, "s", "old").await, Some(ExecutionStatus::Abandoned));
        for client in ["phone", "nul\0byte"] {
            assert_eq!(store.blocked_until(&ada, client).await, Ok(Some(until)), "{client:?}");
        }
        store.append_audit(entry("s", "new")).await.unwrap();
    }
    // A block that was removed does not return.
    let process = database.open().await;
    assert_eq!(process.store.unblock(&ada, "phone", 0).await, Ok(true));
    let process = database.open().await;
    assert_eq!(process.store.blocked_until(&ada, "phone").await, Ok(None));
}

/// While servers are replaced one by one, those of version 1 still run.
#[tokio::test]
async fn servers_of_version_1_can_use_a_migrated_database() {
    let database = Database::new();
    write_version_1(&database).await;
    let process = database.open().await;
    let client = database.client().await;
    let digest = claim("s", "theirs").digest;
    let claimed = "SELECT verdict = 'new' AND used IS NULL
        FROM claim('s', 'theirs', 'mail_send', '1.2.0', $1, false, 3, 5, NULL, 1, 'old server', 60000, 1, false)";
    assert!(holds(&client, claimed, &[&digest.as_slice()]).await);
    assert_eq!(process.store.claim(claim("s", "theirs")).await, Ok(ClaimOutcome::Running));
    // They look a block up as a session, and ignore its standing.
    let blocks = "SELECT count(*) = 2 FROM session WHERE id LIKE 'block%' AND expires_at = $1";
    assert!(holds(&client, blocks, &[&session("s").expires_at]).await);
    // A block that they store is moved when the next server starts.
    let record =
        "UPDATE session SET standing = 'active', expires_at = expires_at + 1 WHERE id LIKE 'block_09%'";
    client.execute(record, &[]).await.unwrap();
    let process = database.open().await;
    let until = process.store.blocked_until(&session("s").principal, "phone").await;
    assert_eq!(until, Ok(Some(session("s").expires_at + 1)));
}
