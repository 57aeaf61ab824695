//! Outages of the PostgreSQL server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolwright_orchestrator::store::postgres::Options;
use toolwright_orchestrator::store::{
    AuditEntry, Backend, Claim, ClaimOutcome, Durability, Error, ExecutionStatus, Postgres,
};

use crate::audit_rules::{entries, verified};
use crate::postgres_store::{Database, PollTimeout, Process, Server, holds, until};
use crate::support::{
    NOW, approved, claim, confirmation, confirmed, entry, over_budget, retrieval, retrieval_charge,
    retrievals, session, settlement, status,
};

fn is_unavailable<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Unavailable(_)))
}

/// A caller that retries until its execution is settled; counts how often it may run it.
async fn retry_until_settled(store: &Postgres, call: &Claim, runs: &AtomicUsize) {
    loop {
        match store.claim(call.clone()).await {
            Ok(ClaimOutcome::New) => {
                runs.fetch_add(1, Ordering::Relaxed);
                store.settle(settlement(call)).await.unwrap();
                return;
            }
            Ok(ClaimOutcome::Running) | Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_connections_under_load_lose_no_call_and_no_audit_row() {
    const CALLERS: usize = 16;
    const EACH: usize = 40;
    let database = Database::new();
    let a = database.open().await;
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (store, runs) = (Arc::clone(&a.store), Arc::clone(&runs));
        callers.spawn(async move {
            for number in 0..EACH {
                let durability = if number % 2 == 0 { Durability::Committed } else { Durability::Relaxed };
                let call = Claim { durability, ..claim("s", &format!("call {caller} {number}")) };
                retry_until_settled(&store, &call, &runs).await;
            }
        });
    }
    // All connections are broken again and again while calls run.
    let client = database.client().await;
    let mut timeout = PollTimeout::default();
    for round in 0..(CALLERS * EACH / 20) {
        while runs.load(Ordering::Relaxed) < round * 20 {
            timeout.wait().await;
        }
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        client.query(sql, &[&a.name]).await.unwrap();
    }
    callers.join_all().await;
    assert_eq!(runs.load(Ordering::Relaxed), CALLERS * EACH, "no call ran twice");
    assert_eq!(verified(&*a.store).await.len(), CALLERS * EACH);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_survives_a_restart_of_the_server() {
    let server = Server::start();
    let database = Database::with_url(server.url.clone());
    let (a, b) = (database.open().await, database.open().await);
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    a.store.append_audit(entry("s", "relaxed")).await.unwrap();
    // As if the server had been down for longer than the lease.
    let client = database.client().await;
    let late = "UPDATE instance SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1";
    client.execute(late, &[&a.store.instance()]).await.unwrap();
    client.execute("UPDATE server SET noticed_at = '-infinity'", &[]).await.unwrap();
    // Nobody may notice it before the restart: once a call is in doubt, it does not run again.
    assert!(!holds(&client, "SELECT is_alive($1)", &[&a.store.instance()]).await);

    let store = Arc::clone(&a.store);
    let polling = tokio::spawn(async move {
        // Until it has seen the start and the end of the outage.
        let mut timeout = PollTimeout::default();
        while !is_unavailable(&store.session("s").await) {
            timeout.wait().await;
        }
        while is_unavailable(&store.session("s").await) {
            timeout.wait().await;
        }
    });
    let restarting = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    let _server = restarting.await.unwrap();
    polling.await.unwrap();
    // Its owner could not renew its lease during the outage, and gets one more.
    assert_eq!(status(&*b.store, "s", "call").await, Some(ExecutionStatus::Running));
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::Running));
    a.store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(b.store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
    b.store.append_audit(entry("s", "other")).await.unwrap();
    assert!(verified(&*b.store).await.len() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_is_retried_until_the_server_is_back() {
    let server = Server::start();
    let database = Database::with_url(server.url.clone());
    let a = Process::start(
        &server.url,
        Options { settle_timeout: Duration::from_secs(60), ..database.options() },
    )
    .await;
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let restarting = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    until(async || is_unavailable(&a.store.session("s").await)).await;
    a.store.settle(settlement(&call)).await.unwrap();
    let _server = restarting.await.unwrap();
    until(async || matches!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::Finished(_)))).await;
    assert_eq!(verified(&*a.store).await.len(), 1);
}

#[tokio::test]
async fn a_new_chain_starts_after_a_crash_has_lost_audit_rows() {
    let database = Database::new();
    let a = database.open().await;
    for number in 0..3 {
        a.store.append_audit(entry("s", &format!("call {number}"))).await.unwrap();
    }
    // Relaxed rows may be lost in a crash.
    let client = database.client().await;
    client.execute("DELETE FROM audit WHERE position = 3", &[]).await.unwrap();
    let breaks = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = $1";
    client.query(breaks, &[&a.name]).await.unwrap();
    a.store.append_audit(entry("s", "call 3")).await.unwrap();
    a.store.append_audit(entry("s", "call 4")).await.unwrap();
    let rows = verified(&*a.store).await;
    assert_eq!(rows.iter().map(|row| row.position).collect::<Vec<_>>(), [1, 2, 1, 2, 3]);
    assert_eq!(entries(&rows)[3].data, json!({ "entries": 1, "from": null, "to": NOW }));
    assert_eq!(rows[2].chain, format!("{}.2", a.store.instance()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_settlement_leaves_its_execution_in_doubt() {
    let database = Database::new();
    let options = Options { settle_timeout: Duration::ZERO, ..database.options() };
    let a = Process::start(&database.url, options).await;
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let client = database.client().await;
    client.batch_execute("ALTER TABLE audit ADD CONSTRAINT full_disk CHECK (false) NOT VALID").await.unwrap();
    assert!(is_unavailable(&a.store.settle(settlement(&call)).await));
    until(async || a.store.claim(call.clone()).await == Ok(ClaimOutcome::InDoubt)).await;
    client.batch_execute("ALTER TABLE audit DROP CONSTRAINT full_disk").await.unwrap();
    a.store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(a.store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
    let rows = verified(&*a.store).await;
    assert_eq!(entries(&rows).iter().map(|entry| &*entry.event).collect::<Vec<_>>(), ["gap", "call"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_audit_entries_are_counted_in_the_audit_once_it_can_be_written() {
    let database = Database::new();
    let options = Options { settle_timeout: Duration::ZERO, ..database.options() };
    let a = Process::start(&database.url, options).await;
    let client = database.client().await;
    client.batch_execute("ALTER TABLE audit ADD CONSTRAINT full_disk CHECK (false) NOT VALID").await.unwrap();
    for at in [NOW + 30, NOW + 10, NOW + 20] {
        let lost = AuditEntry { at, ..entry("s", "lost") };
        assert!(is_unavailable(&a.store.append_audit(lost).await));
    }
    client.batch_execute("ALTER TABLE audit DROP CONSTRAINT full_disk").await.unwrap();
    a.store.append_audit(entry("s", "after")).await.unwrap();
    let written = entries(&verified(&*a.store).await);
    assert_eq!(written[0].data, json!({ "entries": 3, "from": NOW + 10, "to": NOW + 30 }));
    assert_eq!((written[0].at, &*written[0].event), (NOW + 30, "gap"));
    assert_eq!(written[1..], [entry("s", "after")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_test_tells_whether_the_database_can_be_written() {
    let database = Database::new();
    let a = database.open().await;
    a.store.test_write().await.unwrap();
    let client = database.client().await;
    client
        .batch_execute("ALTER TABLE instance ADD CONSTRAINT full_disk CHECK (false) NOT VALID")
        .await
        .unwrap();
    assert!(is_unavailable(&a.store.test_write().await));
    client.batch_execute("ALTER TABLE instance DROP CONSTRAINT full_disk").await.unwrap();
    a.store.test_write().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_caller_went_away_is_taken_back() {
    let database = Database::new();
    let a = database.open().await;
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let approval = approved(&*a.store, confirmation("q", "s", "call")).await;
    let call = Claim { charges: retrieval_charge(1), ..confirmed(&approval) };
    // While the session is locked, the claim waits in the server.
    let mut client = database.client().await;
    let holding = client.transaction().await.unwrap();
    holding.query("SELECT FROM session FOR UPDATE", &[]).await.unwrap();
    let store = Arc::clone(&a.store);
    let waiting = tokio::spawn({
        let call = call.clone();
        async move { store.claim(call).await }
    });
    let observer = database.client().await;
    let blocked = "SELECT count(*) > 0 FROM pg_stat_activity
        WHERE application_name = $1 AND wait_event_type = 'Lock' AND query LIKE '%FROM claim_execution(%'";
    until(async || holds(&observer, blocked, &[&a.name]).await).await;
    waiting.abort();
    holding.commit().await.unwrap();
    until(async || a.store.claim(call.clone()).await == Ok(ClaimOutcome::New)).await;
    assert_eq!(retrievals(&*a.store).await, 1);
    let late = retrieval("s", "late", 1);
    assert_eq!(a.store.claim(late).await, Ok(over_budget(1)));
}

#[tokio::test]
async fn a_statement_has_a_timeout() {
    let database = Database::new();
    let options = Options { statement_timeout: Duration::from_millis(200), ..database.options() };
    let a = Process::start(&database.url, options).await;
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let mut client = database.client().await;
    let holding = client.transaction().await.unwrap();
    holding.query("SELECT FROM session FOR UPDATE", &[]).await.unwrap();
    let late = a.store.begin_turn("s").await.unwrap_err().to_string();
    assert!(late.contains("statement timeout"), "{late}");
    holding.commit().await.unwrap();
    assert_eq!(a.store.begin_turn("s").await.unwrap().turn, 1);
}

#[tokio::test]
async fn errors_do_not_contain_the_password() {
    let database = Database::new();
    let (start, rest) = database.url.split_once("toolwright:").unwrap();
    let (_, host) = rest.split_once('@').unwrap();
    for wrong in [
        format!("{start}toolwright:hunter2@{host}"),
        format!("{start}toolwright:hunter2@127.0.0.1:1/postgres"),
        format!("{start}toolwright:hunter2@no-such-host.invalid/postgres?sslmode=disable"),
        format!("{start}toolwright:hunter2@{host}?no_such_parameter=hunter2"),
    ] {
        let error = Postgres::connect(&wrong, database.options()).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)));
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
