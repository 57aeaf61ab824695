//! The rules, for any history.

use std::collections::HashMap;

use proptest::prelude::ProptestConfig;
use proptest::{collection, proptest};
use toolwright_orchestrator::store::chain::Verifier;
use toolwright_orchestrator::store::{AuditEntry, Memory, Sqlite, Store, sqlite};

use crate::desk::Desk;
use crate::model::{Answers, Model};
use crate::player::{Pace, Played, Player};
use crate::steps::{Step, step};

fn cases(count: u32) -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().map(|text| text.parse().unwrap());
    ProptestConfig { cases: given.unwrap_or(count), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(96))]
    #[test]
    fn any_history_in_memory_keeps_the_rules(steps in collection::vec(step(), 1..60)) {
        hold(Store::Memory(Memory::default()), Pace::Turns, &steps);
    }
}

proptest! {
    #![proptest_config(cases(24))]
    #[test]
    fn any_history_on_disk_keeps_the_rules(steps in collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.db");
        hold(Store::Sqlite(Sqlite::open(&path, sqlite::Options::default()).unwrap()), Pace::Milliseconds, &steps);
    }
}

fn hold(store: Store, pace: Pace, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let played = runtime.block_on(async { Player::new(Desk::new(store).await, pace).play(steps).await });
    let mut model = Model::default();
    model.judge(&played.events);
    approvals_have_run(&played, &model);
    audit_is_whole(&played, &model.answers);
}

/// A yes is not left lying about: its call has run, unless the id was used for something else meanwhile.
fn approvals_have_run(played: &Played, model: &Model) {
    for (session, id) in &played.lying {
        let name = (session[1..].parse().unwrap(), id.clone());
        assert!(model.ran_as(&name).is_some(), "{name:?} was approved, and has not run");
    }
}

/// One row for each answer, also for those that nobody waited for; a row that was changed would show.
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
        assert!(found >= *given, "{answer:?} was given {given} times, and is in the audit {found} times");
    }
    let all = played.audit.len();
    assert!(all >= answers.count && all <= answers.count + answers.lost, "{all} rows: {answers:?}");
}
