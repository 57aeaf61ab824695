//! A server in PostgreSQL that goes away and comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use toolwright_orchestrator::store::postgres::Options;
use toolwright_orchestrator::store::{Backend, Claim, Claimed, Durability, Error, Postgres, Status};

use crate::audit::verified;
use crate::harness::{approved, claim, confirmed, entry, question, retrieval, session, settlement, status};
use crate::in_postgres::{Database, Patience, Process, Server, holds, until};

fn is_unavailable<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Unavailable(_)))
}

/// A caller that comes again until it knows; counts how often it was told to run.
async fn persist(store: &Postgres, call: &Claim, runs: &AtomicUsize) {
    loop {
        match store.claim(call.clone()).await {
            Ok(Claimed::New) => {
                runs.fetch_add(1, Ordering::Relaxed);
                store.settle(settlement(call)).await.unwrap();
                return;
            }
            Ok(Claimed::Running) | Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_under_load_cost_no_call_and_no_audit_row() {
    const CALLERS: usize = 16;
    const EACH: usize = 40;
    let database = Database::new();
    let a = database.open().await;
    a.store.create_session(session("s")).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (store, runs) = (Arc::clone(&a.store), Arc::clone(&runs));
        callers.spawn(async move {
            for number in 0..EACH {
                let durability = if number % 2 == 0 { Durability::Committed } else { Durability::Relaxed };
                let call = Claim { durability, ..claim("s", &format!("call {caller} {number}")) };
                persist(&store, &call, &runs).await;
            }
        });
    }
    // Whenever some more calls have run, all connections break.
    let client = database.client().await;
    let mut patience = Patience::default();
    for round in 0..(CALLERS * EACH / 20) {
        while runs.load(Ordering::Relaxed) < round * 20 {
            patience.wait().await;
        }
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        client.query(sql, &[&a.name]).await.unwrap();
    }
    callers.join_all().await;
    assert_eq!(runs.load(Ordering::Relaxed), CALLERS * EACH, "no call ran twice");
    assert_eq!(verified(&*a.store).await.len(), CALLERS * EACH);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_is_survived() {
    let server = Server::start();
    let database = Database::at(server.url.clone());
    let (a, b) = (database.open().await, database.open().await);
    a.store.create_session(session("s")).await.unwrap();
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(Claimed::New));
    a.store.append(entry("s", "relaxed")).await.unwrap();
    // As if the server had been away for longer than the lease.
    let client = database.client().await;
    let late = "UPDATE instance SET lease_until = '-infinity' WHERE id = $1";
    client.execute(late, &[&a.store.instance()]).await.unwrap();
    client.execute("UPDATE server SET noticed_at = '-infinity'", &[]).await.unwrap();
    assert_eq!(status(&*b.store, "s", "call").await, Some(Status::InDoubt));

    let store = Arc::clone(&a.store);
    let asking = tokio::spawn(async move {
        // Until it has seen the outage, and its end.
        let mut patience = Patience::default();
        while !is_unavailable(&store.session("s").await) {
            patience.wait().await;
        }
        while is_unavailable(&store.session("s").await) {
            patience.wait().await;
        }
    });
    let restarting = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    let _server = restarting.await.unwrap();
    asking.await.unwrap();
    // Its owner could not renew its lease, and has a chance to do so.
    assert_eq!(status(&*b.store, "s", "call").await, Some(Status::Running));
    assert_eq!(b.store.claim(call.clone()).await, Ok(Claimed::Running));
    a.store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(b.store.claim(call).await, Ok(Claimed::Finished(_))));
    b.store.append(entry("s", "other")).await.unwrap();
    assert!(verified(&*b.store).await.len() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_waits_for_a_server_that_is_away() {
    let server = Server::start();
    let database = Database::at(server.url.clone());
    let a = Process::start(&server.url, Options { patience: Duration::from_secs(60), ..database.options() })
        .await;
    a.store.create_session(session("s")).await.unwrap();
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(Claimed::New));
    let restarting = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    until(async || is_unavailable(&a.store.session("s").await)).await;
    a.store.settle(settlement(&call)).await.unwrap();
    let _server = restarting.await.unwrap();
    until(async || matches!(a.store.claim(call.clone()).await, Ok(Claimed::Finished(_)))).await;
    assert_eq!(verified(&*a.store).await.len(), 1);
}

#[tokio::test]
async fn rows_of_the_audit_that_a_crash_has_lost_are_followed_by_a_new_chain() {
    let database = Database::new();
    let a = database.open().await;
    for number in 0..3 {
        a.store.append(entry("s", &format!("call {number}"))).await.unwrap();
    }
    // What was relaxed may be lost.
    let client = database.client().await;
    client.execute("DELETE FROM audit WHERE position = 3", &[]).await.unwrap();
    let breaks = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = $1";
    client.query(breaks, &[&a.name]).await.unwrap();
    a.store.append(entry("s", "call 3")).await.unwrap();
    a.store.append(entry("s", "call 4")).await.unwrap();
    let rows = verified(&*a.store).await;
    assert_eq!(rows.iter().map(|row| row.position).collect::<Vec<_>>(), [1, 2, 1, 2]);
    assert_eq!(rows[2].chain, format!("{}.2", a.store.instance()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_that_fails_leaves_its_call_in_doubt() {
    let database = Database::new();
    let options = Options { patience: Duration::ZERO, ..database.options() };
    let a = Process::start(&database.url, options).await;
    a.store.create_session(session("s")).await.unwrap();
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(Claimed::New));
    let client = database.client().await;
    client.batch_execute("ALTER TABLE audit ADD CONSTRAINT full_disk CHECK (false) NOT VALID").await.unwrap();
    assert!(is_unavailable(&a.store.settle(settlement(&call)).await));
    until(async || a.store.claim(call.clone()).await == Ok(Claimed::InDoubt)).await;
    client.batch_execute("ALTER TABLE audit DROP CONSTRAINT full_disk").await.unwrap();
    a.store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(a.store.claim(call).await, Ok(Claimed::Finished(_))));
    assert_eq!(verified(&*a.store).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_caller_went_away_is_undone() {
    let database = Database::new();
    let a = database.open().await;
    a.store.create_session(session("s")).await.unwrap();
    let asked = approved(&*a.store, question("q", "s", "call")).await;
    let call = Claim { budget: Some((0, 1)), ..confirmed(&asked) };
    // While somebody holds the session, the claim waits in the server.
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
        WHERE application_name = $1 AND wait_event_type = 'Lock' AND query LIKE '%FROM claim(%'";
    until(async || holds(&observer, blocked, &[&a.name]).await).await;
    waiting.abort();
    holding.commit().await.unwrap();
    until(async || a.store.claim(call.clone()).await == Ok(Claimed::New)).await;
    assert_eq!(a.store.session("s").await.unwrap().unwrap().retrievals, 1);
    let late = retrieval("s", "late", 0, 1);
    assert_eq!(a.store.claim(late).await, Ok(Claimed::OverBudget { used: 1 }));
}

#[tokio::test]
async fn a_statement_has_its_time() {
    let database = Database::new();
    let options = Options { statement_timeout: Duration::from_millis(200), ..database.options() };
    let a = Process::start(&database.url, options).await;
    a.store.create_session(session("s")).await.unwrap();
    let mut client = database.client().await;
    let holding = client.transaction().await.unwrap();
    holding.query("SELECT FROM session FOR UPDATE", &[]).await.unwrap();
    let late = a.store.begin_turn("s", 0).await.unwrap_err().to_string();
    assert!(late.contains("statement timeout"), "{late}");
    holding.commit().await.unwrap();
    assert_eq!(a.store.begin_turn("s", 0).await.unwrap().turn, 1);
}

#[tokio::test]
async fn errors_do_not_tell_the_password() {
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
