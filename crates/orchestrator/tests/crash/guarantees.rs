//! Checks the guarantees against the logs, the effects and the audit log.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use toolwright_orchestrator::store::chain::Verifier;
use toolwright_orchestrator::store::{AuditEntry, Backend, Store};

use crate::instructions::StoreLocation;
use crate::ledger::{Known, Ledger};
use crate::log::Answer;
use crate::plan::{Id, Tool, UserAnswer};
use crate::support;

/// Totals, for the test's output.
#[derive(Debug, Default)]
pub struct Counts {
    pub calls: usize,
    pub acknowledged: usize,
    pub in_doubt: usize,
    pub effects: usize,
    /// Idempotent calls that ran more than once.
    pub run_again: usize,
    /// Of these, reads whose caller had a result already that was not on disk yet.
    pub read_again: usize,
    pub approved: usize,
    pub rejected: usize,
    pub waiting: usize,
    pub tries_again: usize,
    pub audit_rows: u64,
    pub chains: usize,
    pub torn: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, acknowledged, in_doubt, effects, run_again, read_again, .. } = self;
        let Self { approved, rejected, waiting, tries_again, audit_rows, chains, torn, .. } = self;
        write!(
            formatter,
            "{calls} calls, {acknowledged} acknowledged, {in_doubt} in doubt, {effects} effects, {run_again} idempotent \
             ones run again ({read_again} reads after their answer); questions: {approved} approved, {rejected} \
             rejected, {waiting} waiting; {tries_again} to be tried again; {audit_rows} audit rows in {chains} chains; \
             {torn} torn lines"
        )
    }
}

/// Checks every call, and the audit. `last` is the process that was not killed.
pub fn check(ledger: &Ledger, location: &StoreLocation, last: u64) -> Counts {
    let mut counts = Counts { calls: ledger.calls.len(), torn: ledger.torn(), ..Counts::default() };
    counts.effects = ledger.effects.values().map(Vec::len).sum();
    for (id, known) in &ledger.calls {
        let tool = ledger.tool(*id);
        let effects = ledger.effects(*id);
        counts.run_again += usize::from(effects.len() > 1);
        assert!(!tool.runs_once() || effects.len() <= 1, "{id} ({tool:?}) ran again: {effects:?}");
        if known.is_rejected {
            assert_eq!(effects, [], "{id} ran although the user rejected it: {known:?}");
            counts.rejected += 1;
            continue;
        }
        check_question(*id, tool, known, ledger, last);
        counts.approved += usize::from(known.is_approved && !known.is_waiting);
        counts.waiting += usize::from(known.is_waiting);
        check_answers(*id, tool, known, ledger, &mut counts);
    }
    for id in ledger.effects.keys() {
        assert!(ledger.calls.contains_key(id), "{id} ran but was never sent");
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_audit(ledger, location, &mut counts));
    counts
}

/// A confirmation request without an answer was still pending at the end, and was approved only then.
fn check_question(id: Id, tool: Tool, known: &Known, ledger: &Ledger, last: u64) {
    let waits = tool == Tool::Confirmed(UserAnswer::Nothing);
    assert_eq!(known.is_waiting, waits, "{id} ({tool:?}): {known:?}");
    if let Tool::Confirmed(_) = tool {
        assert!(known.is_approved, "{id} ended without an approval: {known:?}");
    }
    if waits {
        assert_eq!(known.answers.len(), 1, "{id}: {known:?}");
        assert!(matches!(known.answers[0], (_, Answer::Ok { .. })), "{id}: {known:?}");
        assert!(
            ledger.effects(id).iter().all(|effect| effect.generation == last),
            "{id} ran without an approval"
        );
    }
}

fn check_answers(id: Id, tool: Tool, known: &Known, ledger: &Ledger, counts: &mut Counts) {
    let effects = ledger.effects(id);
    counts.tries_again +=
        known.answers.iter().filter(|(_, answer)| matches!(answer, Answer::TryAgain(_))).count();
    let answers: Vec<_> =
        known.answers.iter().filter(|(_, answer)| !matches!(answer, Answer::TryAgain(_))).collect();
    assert!(!answers.is_empty(), "{id} ({tool:?}) never got a result: {known:?}");
    let mut earlier: Option<(u64, &Value)> = None;
    for (generation, answer) in answers {
        match answer {
            Answer::Ok { data, .. } => {
                let nonce = data["nonce"].as_u64().unwrap();
                assert!(effects.iter().any(|effect| effect.nonce == nonce), "{id}: {known:?} {effects:?}");
                match earlier {
                    Some((_, before)) if before == data => {}
                    // A read is not committed: the next process may read again, the same one never.
                    Some((before, _)) if tool == Tool::Read && before < *generation => counts.read_again += 1,
                    Some(_) => panic!("{id} ({tool:?}) got different results: {known:?}"),
                    None => counts.acknowledged += 1,
                }
                earlier = Some((*generation, data));
            }
            Answer::InDoubt => {
                assert!(tool.runs_once(), "{id} ({tool:?}) can be run again: {known:?}");
                assert!(earlier.is_none(), "{id} was acknowledged and lost: {known:?}");
                assert!(known.sent < *generation, "{id} is in doubt without a crash: {known:?}");
                let ran_since = effects.iter().any(|effect| effect.generation >= *generation);
                assert!(!ran_since, "{id} was in doubt and ran: {known:?} {effects:?}");
            }
            Answer::TryAgain(_) | Answer::Unexpected(_) => unreachable!(),
        }
    }
    let doubts = known.answers.iter().filter(|(_, answer)| *answer == Answer::InDoubt).count();
    assert!(doubts == 0 || earlier.is_none(), "{id} was in doubt, and then it was not: {known:?}");
    counts.in_doubt += usize::from(doubts > 0);
}

/// The hash chains are intact, and contain the results that callers received.
async fn check_audit(ledger: &Ledger, location: &StoreLocation, counts: &mut Counts) {
    let store = support::store(location).await;
    let (mut verifier, mut after) = (Verifier::default(), 0);
    let mut ran = HashMap::<String, usize>::new();
    loop {
        let rows = store.audit_rows(after, 5000).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = last.number;
        for row in &rows {
            verifier.check(row).unwrap();
            let entry: AuditEntry = serde_json::from_str(&row.entry).unwrap();
            if entry.event == "called" {
                *ran.entry(entry.execution_id).or_default() += 1;
            }
        }
    }
    for (id, known) in &ledger.calls {
        let rows = ran.get(&id.to_string()).copied().unwrap_or(0);
        let was_ok = known.answers.iter().any(|(_, answer)| matches!(answer, Answer::Ok { .. }));
        if ledger.tool(*id) != Tool::Read {
            assert_eq!(rows, usize::from(was_ok), "{id} in the audit: {known:?}");
        }
    }
    assert_eq!(
        store.approved_confirmations().await,
        Ok(Vec::new()),
        "an approval was left over, and would run again"
    );
    counts.audit_rows = verifier.rows;
    counts.chains = verifier.heads().count();
    if let Store::Postgres(postgres) = &store {
        postgres.close().await;
    }
}
