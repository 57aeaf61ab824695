//! The rules that every history keeps.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use proptest::prelude::ProptestConfig;
use proptest::{collection, proptest};
use toolwright_orchestrator::store::chain::Verifier;
use toolwright_orchestrator::store::{AuditEntry, Memory, Postgres, Sqlite, Store, postgres, sqlite};

use crate::model::{Answers, Model};
use crate::player::{Pace, Played, Player};
use crate::steps::{Step, step};
use crate::support::Fixture;

fn cases(count: u32) -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().map(|text| text.parse().unwrap());
    ProptestConfig { cases: given.unwrap_or(count), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(96))]
    #[test]
    fn any_history_in_memory_keeps_the_rules(steps in collection::vec(step(), 1..60)) {
        check(async { Store::Memory(Memory::default()) }, Pace::Turns, &steps);
    }
}

proptest! {
    #![proptest_config(cases(24))]
    #[test]
    fn any_history_on_disk_keeps_the_rules(steps in collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.db");
        let store = async { Store::Sqlite(Sqlite::open(&path, sqlite::Options::default()).unwrap()) };
        check(store, Pace::Milliseconds, &steps);
    }
}

proptest! {
    #![proptest_config(cases(12))]
    #[test]
    fn any_history_in_postgres_keeps_the_rules(steps in collection::vec(step(), 1..40)) {
        check(in_postgres(), Pace::Milliseconds, &steps);
    }
}

/// A schema of its own on the server that the tests share.
pub async fn in_postgres() -> Store {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "TOOLWRIGHT_TEST_POSTGRES is not set: run ./scripts/test, or start a server with \
             `scripts/postgres start` and put the URL that it prints there"
        )
    });
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let schema = format!("properties {} {time}", std::process::id());
    // No lease expires, even on a busy machine.
    let lease = Duration::from_secs(60);
    let options = postgres::Options { schema, lease, connections: 4, ..postgres::Options::default() };
    Store::Postgres(Postgres::connect(&url, options).await.unwrap())
}

fn check(store: impl Future<Output = Store>, pace: Pace, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let play = async { Player::new(Fixture::new(store.await).await, pace).play(steps).await };
    let played = runtime.block_on(play);
    let mut model = Model::default();
    model.judge(&played.events);
    approvals_have_run(&played, &model);
    audit_is_whole(&played, &model.answers);
}

/// Every approved call has run, unless its id was used for another call meanwhile.
fn approvals_have_run(played: &Played, model: &Model) {
    for (session, id) in &played.unused_approvals {
        let name = (session[1..].parse().unwrap(), id.clone());
        assert!(model.is_settled(&name), "{name:?} was approved but has not run");
    }
}

/// The audit log is intact, and has one row for each result, delivered or not.
fn audit_is_whole(played: &Played, answers: &Answers) {
    let mut verifier = Verifier::default();
    let mut rows = HashMap::<(String, String, String), usize>::new();
    for row in &played.audit {
        verifier.check(row).unwrap();
        let entry: AuditEntry = serde_json::from_str(&row.entry).unwrap();
        *rows.entry((entry.session, entry.execution_id, entry.outcome)).or_default() += 1;
    }
    for (answer, given) in &answers.given {
        let found = rows.get(answer).copied().unwrap_or(0);
        assert!(
            found >= *given,
            "{answer:?} was returned {given} times, but is in the audit log {found} times"
        );
    }
    let mut expired = 0;
    for ((session, id, outcome), count) in &rows {
        if outcome == "expired" {
            // A request that expires has a row of its own: at most one for each time it was made.
            let requested = (session.clone(), id.clone(), "CONFIRMATION_REQUIRED".to_owned());
            assert!(
                *count <= rows.get(&requested).copied().unwrap_or(0),
                "{session} {id} expired {count} times"
            );
            expired += count;
        }
    }
    let all = played.audit.len() - expired;
    assert!(all >= answers.count && all <= answers.count + answers.lost, "{all} rows: {answers:?}");
}
