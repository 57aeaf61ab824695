//! Several processes that share one PostgreSQL database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolwright_orchestrator::store::chain::Verifier;
use toolwright_orchestrator::store::postgres::Options;
use toolwright_orchestrator::store::{
    Backend, Claim, ClaimOutcome, Durability, Error, ExecutionStatus, Postgres, Settlement,
};

use crate::postgres_store::{Database, Process, holds, until, url};
use crate::support::{
    ALL, DAY, NOW, approved, claim, confirmation, confirmed, entry, envelope, idempotent, retrieval,
    retrievals, run, session, settlement, status,
};

async fn two_processes() -> (Database, Process, Process) {
    let database = Database::new();
    let (a, b) = (database.open().await, database.open().await);
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    (database, a, b)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_with_the_same_claim_one_runs_it() {
    let (_database, a, b) = two_processes().await;
    for round in 0..200 {
        let call = match round % 4 {
            0 => claim("s", &format!("call {round}")),
            1 => Claim { durability: Durability::Relaxed, ..idempotent("s", &format!("call {round}")) },
            2 => retrieval("s", &format!("call {round}"), 1 + round / 4),
            _ => {
                let pending = confirmation(&format!("q {round}"), "s", &format!("call {round}"));
                confirmed(&approved(&*a.store, pending).await)
            }
        };
        let start = Arc::new(Barrier::new(2));
        let mut tasks = JoinSet::new();
        for store in [&a.store, &b.store] {
            let (store, start, call) = (Arc::clone(store), Arc::clone(&start), call.clone());
            tasks.spawn(async move {
                start.wait().await;
                store.claim(call).await.unwrap()
            });
        }
        let mut outcomes = tasks.join_all().await;
        outcomes.sort_by_key(|outcome| *outcome != ClaimOutcome::New);
        assert_eq!(outcomes, [ClaimOutcome::New, ClaimOutcome::Running], "round {round}");
    }
    assert_eq!(retrievals(&*a.store).await, 50);
}

#[tokio::test]
async fn what_one_process_records_the_other_replays() {
    let (_database, a, b) = two_processes().await;
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(status(&*b.store, "s", "call").await, Some(ExecutionStatus::Running));
    a.store.settle(settlement(&call)).await.unwrap();
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::Finished(settlement(&call).envelope)));
    let other = Claim { digest: [8; 32], ..call };
    assert_eq!(b.store.claim(other).await, Ok(ClaimOutcome::Conflict));
}

#[tokio::test]
async fn the_claims_of_a_dead_process_are_orphaned_when_its_lease_expires() {
    let database = Database::new();
    let b = database.open().await;
    b.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let options = Options { lease: Duration::from_secs(3), ..database.options() };
    let a = Process::start(&database.url, options).await;
    let (mail, search) = (claim("s", "mail"), idempotent("s", "search"));
    assert_eq!(a.store.claim(mail.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(a.store.claim(search.clone()).await, Ok(ClaimOutcome::New));
    // The lease is renewed while the process runs.
    let client = database.client().await;
    let renewed = "SELECT lease_until > started_at + 1.2 * lease FROM instance WHERE id = $1";
    until(async || holds(&client, renewed, &[&a.store.instance()]).await).await;
    assert_eq!(b.store.claim(search.clone()).await, Ok(ClaimOutcome::Running));

    a.kill(&database).await;
    until(async || status(&*b.store, "s", "mail").await == Some(ExecutionStatus::InDoubt)).await;
    assert_eq!(b.store.claim(mail).await, Ok(ClaimOutcome::InDoubt));
    assert_eq!(status(&*b.store, "s", "search").await, Some(ExecutionStatus::Abandoned));
    assert_eq!(b.store.claim(search.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(b.store.claim(search).await, Ok(ClaimOutcome::Running));
}

#[tokio::test]
async fn closing_a_store_ends_its_lease_at_once() {
    let (database, a, b) = two_processes().await;
    let call = idempotent("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    a.store.append_audit(entry("s", "call")).await.unwrap();
    a.store.close().await;
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let Err(Error::Unavailable(why)) = a.store.claim(call.clone()).await else { panic!("it is not closed") };
    assert!(why.starts_with("PostgreSQL at 127.0.0.1:") && why.ends_with(": it is closed"), "{why}");
    assert!(a.store.settle(settlement(&call)).await.is_err());
    a.store.close().await;

    let c = database.open().await;
    let call = claim("s", "another");
    assert_eq!(c.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let store = Arc::clone(&c.store);
    drop(c);
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::Running), "its lease has not expired");
    drop(store);

    let store = Postgres::connect(&database.url, database.options()).await.unwrap();
    let call = claim("s", "third");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    until(async || b.store.claim(call.clone()).await == Ok(ClaimOutcome::InDoubt)).await;
}

#[tokio::test]
async fn a_late_owner_can_settle_if_no_other_did() {
    let (database, a, b) = two_processes().await;
    let (taken, doubted) = (idempotent("s", "taken"), claim("s", "doubted"));
    let late = |call: &Claim| Settlement { envelope: envelope("call", json!("late")), ..settlement(call) };
    for call in [&taken, &doubted] {
        assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    }
    database.expire_lease(a.store.instance()).await;
    assert_eq!(b.store.claim(taken.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(b.store.claim(doubted.clone()).await, Ok(ClaimOutcome::InDoubt));
    assert_eq!(a.store.claim(taken.clone()).await, Ok(ClaimOutcome::Running));

    b.store.settle(settlement(&taken)).await.unwrap();
    a.store.settle(late(&taken)).await.unwrap();
    assert_eq!(a.store.claim(taken.clone()).await, Ok(ClaimOutcome::Finished(settlement(&taken).envelope)));
    a.store.settle(late(&doubted)).await.unwrap();
    assert_eq!(b.store.claim(doubted.clone()).await, Ok(ClaimOutcome::Finished(late(&doubted).envelope)));
    assert_eq!(a.store.audit_rows(0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_claim_renews_an_expired_lease() {
    let (database, a, b) = two_processes().await;
    database.expire_lease(a.store.instance()).await;
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(b.store.claim(call).await, Ok(ClaimOutcome::Running));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_200_calls_to_two_processes_exactly_the_rate_limit_runs() {
    let (database, a, b) = two_processes().await;
    let stores = [Arc::clone(&a.store), Arc::clone(&b.store)];
    assert_eq!(crate::rate_rules::claim_at_once(&stores, 200, 50).await, 50);
    let client = database.client().await;
    assert!(holds(&client, "SELECT count(*) = 50 FROM rate", &[]).await, "only a limit's calls are kept");
}

#[tokio::test]
async fn an_execution_is_examined_by_a_sweep_once() {
    let (database, a, _b) = two_processes().await;
    for number in 0..130 {
        run(&*a.store, idempotent("s", &format!("call {number}"))).await;
    }
    let client = database.client().await;
    let examined = async |before: i64| -> i64 {
        let sql = "SELECT forget_executions(100, $1, 1000)";
        client.query_one(sql, &[&before]).await.unwrap().get(0)
    };
    assert_eq!(examined(NOW - 1).await, 0);
    assert_eq!(examined(NOW).await, 130);
    assert!(holds(&client, "SELECT count(*) = 100 FROM execution", &[]).await);
    assert_eq!([examined(NOW).await, examined(NOW + 1).await], [0, 0]);
    for number in 0..10 {
        run(&*a.store, Claim { now: NOW + DAY, ..idempotent("s", &format!("later {number}")) }).await;
    }
    // The oldest of the first hundred are forgotten with the next that become old.
    assert_eq!(examined(NOW + DAY).await, 10);
    let oldest =
        "SELECT count(*) = 100 AND min(claimed_at) = $1 AND count(*) FILTER (WHERE id LIKE 'later%') = 10
        FROM execution";
    assert!(holds(&client, oldest, &[&NOW]).await);
}

#[tokio::test]
async fn the_sessions_of_a_toolset_are_found_by_an_index() {
    let (database, a, _b) = two_processes().await;
    let client = database.client().await;
    // As a server of the version before stores them.
    let insert = "INSERT INTO session (id, record, turn, standing, expires_at, revision)
        SELECT 'copy ' || n, replace(record, $1, '1.0.copy' || n % 50), 0, 'active', expires_at, 0
        FROM session, generate_series(1, 5000) n WHERE id = 's'";
    client.execute(insert, &[&session("s").toolset]).await.unwrap();
    client.batch_execute("ANALYZE session").await.unwrap();
    let scanned = "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables
        WHERE schemaname = $1 AND relname = 'session'";
    let uses = "SELECT coalesce(sum(idx_scan), 0)::bigint >= $2 FROM pg_stat_user_indexes
        WHERE schemaname = $1 AND indexrelname = 'session_toolset'";
    client.execute("SELECT pg_stat_force_next_flush()", &[]).await.unwrap();
    let before: i64 = client.query_one(scanned, &[&database.schema]).await.unwrap().get(0);
    assert_eq!(a.store.is_toolset_in_use("1.0.copy7").await, Ok(true));
    assert_eq!(a.store.is_toolset_in_use("1.0.copy").await, Ok(false));
    until(async || holds(&client, uses, &[&database.schema, &2_i64]).await).await;
    let after: i64 = client.query_one(scanned, &[&database.schema]).await.unwrap().get(0);
    assert_eq!(after, before, "no session was read by a sequential scan");
}

#[tokio::test]
async fn dead_instances_are_deleted() {
    let (database, a, b) = two_processes().await;
    let instance = a.kill(&database).await;
    database.expire_lease(&instance).await;
    b.store.sweep(NOW + DAY).await.unwrap();
    let client = database.client().await;
    let rows = client.query("SELECT id FROM instance", &[]).await.unwrap();
    let known: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(known, [b.store.instance()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_can_create_the_schema_at_once() {
    let database = Database::new();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (url, options) = (database.url.clone(), database.options());
        tasks.spawn(async move { Postgres::connect(&url, options).await.unwrap() });
    }
    let stores = tasks.join_all().await;
    let names: BTreeSet<_> = stores.iter().map(|store| store.instance().to_owned()).collect();
    assert_eq!(names.len(), 8);
    stores[0].create_session(session("s"), Durability::Committed).await.unwrap();
    for (number, store) in stores.iter().enumerate() {
        run(store, claim("s", &format!("call {number}"))).await;
    }
    let client = database.client().await;
    assert!(holds(&client, "SELECT count(*) = max(version) FROM migration", &[]).await);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let database = Database::new();
    drop(database.open().await);
    let client = database.client().await;
    client.execute("INSERT INTO migration (version) VALUES (99)", &[]).await.unwrap();
    let refused = Postgres::connect(&database.url, database.options()).await.unwrap_err().to_string();
    assert!(refused.contains("has version 99, of a newer Toolwright"), "{refused}");
}

/// Numbers are assigned before transactions end: a reader that continues after the last number must not miss a slower
/// one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_reader_misses_nothing_while_two_processes_write() {
    const WRITERS: usize = 8;
    const EACH: usize = 50;
    let (_database, a, b) = two_processes().await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(if writer % 2 == 0 { &a.store } else { &b.store });
        writers.spawn(async move {
            for call in 0..EACH {
                run(&*store, claim("s", &format!("call {writer} {call}"))).await;
            }
        });
    }
    let mut verifier = Verifier::default();
    let mut seen = BTreeSet::new();
    while seen.len() < WRITERS * EACH {
        let after = seen.last().copied().unwrap_or(0);
        for row in a.store.audit_rows(after, 7).await.unwrap() {
            verifier.check(&row).unwrap();
            assert!(seen.insert(row.number));
        }
    }
    writers.join_all().await;
    assert_eq!(verifier.heads().count(), 2);
}

#[tokio::test]
async fn ids_can_hold_any_text() {
    let (_database, a, _b) = two_processes().await;
    for id in ["a\0b", r"a\0b", "'; DROP TABLE session; --", "\u{10FFFF}", ""] {
        a.store.create_session(session(id), Durability::Committed).await.unwrap();
        assert_eq!(*a.store.session(id).await.unwrap().unwrap(), session(id));
        let call = claim(id, id);
        let recorded = run(&*a.store, call.clone()).await;
        assert_eq!(a.store.claim(call).await, Ok(ClaimOutcome::Finished(recorded)));
        assert_eq!(
            *a.store.create_confirmation(confirmation(id, id, "another")).await.unwrap(),
            confirmation(id, id, "another")
        );
    }
}

#[tokio::test]
async fn a_connection_can_be_encrypted() {
    let database = Database::new();
    let client = database.client().await;
    let certificate: String = client.query_one("SHOW ssl_cert_file", &[]).await.unwrap().get(0);
    let name = format!("encrypted-{}", std::process::id());
    let encrypted =
        format!("{}?sslmode=verify-full&sslrootcert={certificate}&application_name={name}", url());
    let store = Postgres::connect(&encrypted, database.options()).await.unwrap();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    let sql = "SELECT count(*) > 0 AND bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = $1";
    assert!(holds(&client, sql, &[&name]).await);
    let untrusted = Postgres::connect(&format!("{}?sslmode=require", url()), database.options()).await;
    assert!(untrusted.unwrap_err().to_string().contains("certificate"));
}

#[tokio::test]
async fn a_read_only_store_changes_nothing() {
    let database = Database::new();
    let open = || Postgres::read_only(&database.url, database.options());
    let Err(Error::Unavailable(why)) = open().await else { panic!("there is no schema") };
    assert!(why.contains("nothing is stored yet"), "{why}");
    let schemas = "SELECT FROM pg_namespace WHERE nspname = $1";
    let client = database.client().await;
    assert!(client.query(schemas, &[&database.schema]).await.unwrap().is_empty());

    let process = database.open().await;
    process.store.create_session(session("s"), Durability::Committed).await.unwrap();
    run(&*process.store, claim("s", "first")).await;
    let pending = process.store.create_confirmation(confirmation("q", "s", "second")).await.unwrap();
    let reader = open().await.unwrap();
    assert_eq!(reader.audit_rows(0, 10).await, process.store.audit_rows(0, 10).await);
    assert_eq!(reader.pending_confirmations(ALL).await, Ok(vec![(*pending).clone()]));
    let count = client.query_one("SELECT count(*) FROM instance", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
    client.execute("INSERT INTO migration (version) VALUES (99)", &[]).await.unwrap();
    let Err(Error::Unavailable(why)) = open().await else { panic!("the schema is newer") };
    assert!(why.contains("99") && why.contains("newer"), "{why}");
}
