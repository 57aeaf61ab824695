//! New toolsets beside old sessions: after a restart, on another server, and with approvals that wait.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_contract::Mode;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{
    Backend, ConfirmationStatus, Decision, Postgres, Sqlite, Store, postgres, sqlite,
};
use toolwright_orchestrator::{CallRequest, Orchestrator, Runtime, ToolCall};

use crate::support::{ToolsetBuilder, to_json};

/// A toolset whose tool `act` returns this text. `ask` does the same once a person has approved it.
fn version(text: &str) -> (Runtime, TempDir) {
    let body = format!("return {{ ok: true, data: '{text}' }}");
    let asking = json!({ "requiresConfirmation": true });
    ToolsetBuilder::new().tool("act", json!({}), &body).tool("ask", asking, &body).runtime()
}

/// A server process with this toolset.
fn serve(store: Store, toolset: &(Runtime, TempDir)) -> Orchestrator {
    Orchestrator::builder(toolset.0.clone()).store(store).build().unwrap()
}

fn open(path: &Path) -> Store {
    Store::Sqlite(Sqlite::open(path, sqlite::Options::default()).unwrap())
}

async fn begin(orchestrator: &Orchestrator) -> String {
    orchestrator.create_session(NewSession::new("mira", Mode::Text)).await.unwrap().id.clone()
}

async fn call(orchestrator: &Orchestrator, session: &str, id: &str, tool: &str) -> Value {
    let call = ToolCall { id: Some(id.to_owned()), tool: tool.to_owned(), args: json!({}) };
    to_json(&orchestrator.call(CallRequest::new(session, call)).await)
}

/// Makes a call that needs approval, and returns the id of its confirmation request.
async fn ask(orchestrator: &Orchestrator, session: &str, id: &str) -> String {
    assert_eq!(call(orchestrator, session, id, "ask").await["error"]["type"], "CONFIRMATION_REQUIRED");
    let pending = orchestrator.pending_confirmations(Some(session)).await.unwrap();
    pending.iter().find(|request| request.execution == id).unwrap().id.clone()
}

async fn approve(orchestrator: &Orchestrator, session: &str, id: &str) -> Value {
    let (proof, client_id, by) = (AnswerProof::Transport, "mira", "mira");
    let approver = Approver { token: id, proof, session, client_id, by, principal: None };
    to_json(&orchestrator.approve(&approver, None).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_with_its_toolset_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let old = version("old");
    let before = serve(open(&path), &old);
    let session = begin(&before).await;
    let (asked, question) = (ask(&before, &session, "c0").await, ask(&before, &session, "c1").await);
    let yes = Decision::Approve {
        by: "mira".into(),
        args: json!({}),
        redacted_args: None,
        edits: Vec::new(),
        roles: None,
    };
    before.store().decide_confirmation(&asked, yes, 0).await.unwrap().unwrap();
    before.store().close().await;
    // Nothing of the old version is on disk.
    drop((before, old));

    let new = version("new");
    let after = serve(open(&path), &new);
    assert_eq!(call(&after, &session, "c2", "act").await["data"], "old");
    assert_eq!(call(&after, &begin(&after).await, "c2", "act").await["data"], "new");
    // An approval of before the restart runs once.
    assert_eq!(after.resume().await, Ok(1));
    assert_eq!(after.resume().await, Ok(0));
    assert_eq!(to_json(&after.recorded_envelope(&session, "c0").await.unwrap().unwrap())["data"], "old");
    assert_ne!(asked, question);
    assert_eq!(approve(&after, &session, &question).await["data"], "old");
    let stored = after.store().toolsets().await.unwrap();
    assert_eq!(
        stored.iter().map(|(info, sessions)| (info.tools, *sessions)).collect::<Vec<_>>(),
        [(2, 1), (2, 1)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_with_its_toolset_on_another_server() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").expect("TOOLWRIGHT_TEST_POSTGRES: see scripts/test");
    let schema = format!("deploy {} {}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let connect = async || {
        let options = postgres::Options { schema: schema.clone(), connections: 4, ..Default::default() };
        Store::Postgres(Postgres::connect(&url, options).await.unwrap())
    };
    let (old, new) = (version("old"), version("new"));
    let (one, two) = (serve(connect().await, &old), serve(connect().await, &new));
    let (of_one, of_two) = (begin(&one).await, begin(&two).await);
    for server in [&one, &two] {
        let id = if std::ptr::eq(server, &one) { "c1" } else { "c2" };
        assert_eq!(call(server, &of_one, id, "act").await["data"], "old");
        assert_eq!(call(server, &of_two, id, "act").await["data"], "new");
    }
    let question = ask(&one, &of_one, "c3").await;
    assert_eq!(approve(&two, &of_one, &question).await["data"], "old");
    assert_eq!(call(&one, &of_one, "c3", "ask").await["data"], "old");
    two.store().close().await;
    one.store().close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_a_call_that_could_not_run_is_not_used_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let built = version("built");
    let before = serve(open(&path), &built);
    let session = begin(&before).await;
    let question = ask(&before, &session, "c1").await;
    let toolset = before.store().toolsets().await.unwrap()[0].0.clone();
    before.store().close().await;
    drop(before);

    // The store has lost the toolset, as a store of an earlier version has none.
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute("DELETE FROM toolsets WHERE id = ?1", [&toolset.id]).unwrap();
    drop(database);
    let after = serve(open(&path), &version("new"));
    let refused = approve(&after, &session, &question).await;
    assert_eq!(refused["error"]["type"], "UNAVAILABLE", "{refused}");
    let stored = async |orchestrator: &Orchestrator| {
        orchestrator.store().confirmation(&question).await.unwrap().unwrap().status
    };
    assert_eq!(stored(&after).await, ConfirmationStatus::Approved);
    let entries = after.store().audit_rows(0, 100).await.unwrap().len();
    assert_eq!(after.resume().await, Ok(0));
    assert_eq!(after.store().audit_rows(0, 100).await.unwrap().len(), entries);
    after.store().close().await;
    drop(after);

    // The server that has the toolset runs it.
    let back = serve(open(&path), &built);
    assert_eq!(back.resume().await, Ok(1));
    assert_eq!(stored(&back).await, ConfirmationStatus::Used);
    assert_eq!(to_json(&back.recorded_envelope(&session, "c1").await.unwrap().unwrap())["data"], "built");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_toolset_is_loaded_once_and_unloaded_when_no_session_uses_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let before = serve(open(&path), &version("old"));
    let session = begin(&before).await;
    before.store().close().await;
    drop(before);
    let after = serve(open(&path), &version("new"));
    let record = after.session(&session).await.unwrap().unwrap();
    let (one, two) = tokio::join!(after.runtime_for(&record), after.runtime_for(&record));
    let loaded = one.unwrap().unwrap().downgrade();
    assert!(loaded.is_of(&two.unwrap().unwrap()));
    after.sweep().await.unwrap();
    assert!(loaded.is_held());
    after.end_session(&session).await.unwrap();
    after.sweep().await.unwrap();
    assert!(!loaded.is_held());
}
