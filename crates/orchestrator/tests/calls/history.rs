//! A call after its end: steps, arguments, envelope, answers and nested calls.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_contract::Mode;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{AuditFilter, AuditQuery, Backend, Sqlite, Store};
use toolwright_orchestrator::{CallHistory, CallRequest, RecordSource};

use crate::support::{Fixture, Setup, call, retrieval};

async fn history(fixture: &Fixture, session: &str, execution: &str) -> CallHistory {
    fixture.orchestrator.call_history(session, execution).await.unwrap().unwrap()
}

fn events(history: &CallHistory) -> Vec<(&str, &str)> {
    let entries = history.entries.iter().map(|found| &found.entry);
    entries.map(|entry| (entry.event.as_str(), entry.outcome.as_str())).collect()
}

fn steps(history: &CallHistory, at: usize) -> Vec<&'static str> {
    history.entries[at].entry.steps.iter().map(|(step, _)| step.as_str()).collect()
}

#[tokio::test]
async fn a_call_has_its_steps_arguments_and_envelope() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "act", json!({ "n": 1 })).await;
    fixture.call(&session, "c1", "act", json!({ "n": 1 })).await;
    let history = history(&fixture, &session, "c1").await;
    assert_eq!(events(&history), [("called", "ok"), ("replayed", "ok")]);
    assert_eq!(steps(&history, 0), ["resolve", "replay", "admit", "claim", "run", "settle"]);
    assert_eq!(steps(&history, 1), ["resolve", "replay"]);
    assert_eq!(history.source, RecordSource::Stored);
    assert_eq!(history.args.as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(history.envelope.unwrap().outcome.as_ref().unwrap().data["call"], "c1");
    let entry = &history.entries[0].entry;
    assert_eq!((entry.principal.as_str(), entry.org.as_deref()), ("client", Some("studio")));
    assert_eq!(fixture.orchestrator.call_history(&session, "c2").await, Ok(None));
    assert_eq!(fixture.orchestrator.call_history("other", "c1").await, Ok(None));
}

#[tokio::test]
async fn every_attempt_is_a_step() {
    let fixture = Setup::new().tool("find", retrieval()).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "find", json!({ "fail": "TRANSIENT" })).await;
    let history = history(&fixture, &session, "c1").await;
    assert_eq!(
        steps(&history, 0),
        ["resolve", "replay", "admit", "claim", "run", "backoff", "run", "settle"]
    );
}

#[tokio::test]
async fn a_call_that_leaves_no_record_is_held_in_memory() {
    let fixture = Setup::new().tool("find", retrieval()).build();
    let new = NewSession { id: Some("own".to_owned()), ..NewSession::new("client", Mode::Text) };
    let request = CallRequest::new(new, call("", "find", json!({ "q": "tea" })));
    let envelope = fixture.orchestrator.call(request).await;
    let id = &envelope.meta.execution_id;
    let history = history(&fixture, "own", id).await;
    assert_eq!(steps(&history, 0), ["resolve", "admit", "run", "settle"]);
    assert_eq!((history.source, history.args.as_deref()), (RecordSource::Memory, Some(r#"{"q":"tea"}"#)));
    assert_eq!(history.envelope, Some(envelope));
}

#[tokio::test]
async fn a_refused_call_shows_what_was_refused() {
    let schema = json!({ "type": "object", "properties": { "password": { "writeOnly": true }, "n": {} },
        "additionalProperties": false });
    let fixture = Setup::new().tool("act", json!({ "jsonSchema": schema })).build();
    let session = fixture.session(Mode::Text).await;
    let args = json!({ "password": "hunter22", "m": 1 });
    fixture.call(&session, "c1", "act", args).await;
    let refused = history(&fixture, &session, "c1").await;
    assert_eq!((events(&refused), refused.source), (vec![("refused", "VALIDATION")], RecordSource::Memory));
    assert_eq!(steps(&refused, 0), ["resolve", "replay", "admit"]);
    let args: Value = serde_json::from_str(refused.args.as_deref().unwrap()).unwrap();
    assert_eq!(args, json!({ "password": "[redacted]", "m": 1 }));
    // Nothing says which arguments of an unknown tool are secret.
    fixture.call(&session, "c2", "atc", json!({ "password": "hunter22" })).await;
    let unknown = history(&fixture, &session, "c2").await;
    assert_eq!((events(&unknown), unknown.args.clone()), (vec![("refused", "NOT_FOUND")], None));
}

#[tokio::test]
async fn secrets_are_in_no_record_of_a_call_that_ran() {
    let schema = json!({ "type": "object", "properties": { "password": { "writeOnly": true } } });
    let fixture = Setup::new().tool("act", json!({ "jsonSchema": schema })).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "act", json!({ "password": "hunter22" })).await;
    let history = history(&fixture, &session, "c1").await;
    assert_eq!(history.args.as_deref(), Some(r#"{"password":"[redacted]"}"#));
    let record = fixture.orchestrator.store().execution(&session, "c1").await.unwrap();
    assert!(!format!("{record:?}").contains("hunter22"));
}

#[tokio::test]
async fn nested_calls_name_the_call_that_made_them() {
    let fixture = Setup::new().tool("outer", json!({})).tool("inner", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    let args = json!({ "call": "inner", "with": { "n": 1 } });
    fixture.call(&session, "c1", "outer", args).await;
    let outer = history(&fixture, &session, "c1").await;
    assert_eq!(events(&outer), [("called", "ok")]);
    let nested: Vec<_> = outer
        .nested
        .iter()
        .map(|found| {
            (found.entry.execution_id.as_str(), found.entry.tool.as_str(), found.entry.parent.as_deref())
        })
        .collect();
    assert_eq!(nested, [("c1.1", "inner", Some("c1"))]);
    let inner = history(&fixture, &session, "c1.1").await;
    assert_eq!((events(&inner), inner.nested.len()), (vec![("called", "ok")], 0));
    assert_eq!(inner.args.as_deref(), Some(r#"{"n":1}"#));
}

#[tokio::test]
async fn calls_are_watched_as_they_end() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "before", "act", json!({})).await;
    let mut watched = fixture.orchestrator.watch_calls();
    fixture.call(&session, "c1", "act", json!({})).await;
    fixture.call(&session, "c2", "nothing", json!({})).await;
    let mut seen = Vec::new();
    while let Ok(entry) = watched.try_recv() {
        seen.push((entry.execution_id.clone(), entry.outcome.clone()));
    }
    assert_eq!(seen, [("c1".to_owned(), "ok".to_owned()), ("c2".to_owned(), "NOT_FOUND".to_owned())]);
}

#[tokio::test]
async fn calls_are_counted_by_minute() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "act", json!({})).await;
    fixture.clock.advance(60_000);
    fixture.call(&session, "c2", "act", json!({ "fail": "PERMANENT" })).await;
    fixture.call(&session, "c3", "made_up", json!({})).await;
    let minutes = fixture.orchestrator.minutes(0);
    let counts: Vec<_> = minutes
        .iter()
        .map(|minute| {
            let rows = minute.tools.iter().map(|((tool, _), row)| (tool.as_str(), row.calls, row.refusals));
            (minute.at, rows.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        counts,
        [(960_000, vec![("act", 1, 0)]), (1_020_000, vec![("(unknown)", 0, 1), ("act", 1, 0)])]
    );
}

#[tokio::test]
async fn the_calls_of_one_principal_are_found() {
    let fixture = Setup::new().tool("act", json!({})).build();
    for client in ["ada", "mira", "ada"] {
        let session = fixture.session_of(client, Mode::Text, &[]).await;
        fixture.call(&session, "c1", "act", json!({})).await;
    }
    let principal = toolwright_contract::Principal {
        id: "ada".to_owned(),
        org: Some("studio".to_owned()),
        roles: Vec::new(),
    };
    let filter = AuditFilter { principal: Some(principal.key()), ..AuditFilter::default() };
    let query = AuditQuery { filter, before: None, limit: 10 };
    let page = fixture.orchestrator.store().audit_page(&query).await.unwrap();
    let numbers: Vec<u64> = page.entries.iter().map(|found| found.number).collect();
    assert_eq!(numbers, [3, 1]);
}

#[tokio::test]
async fn the_numbers_of_the_last_day_outlast_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Sqlite::open(&directory.path().join("state.db"), Options::default()).unwrap();
    let with = |store| Setup::new().tool("find", retrieval()).build_on(Store::Sqlite(store));
    let before = with(open());
    let session = before.session(Mode::Text).await;
    before.call(&session, "c1", "find", json!({})).await;
    before.call(&session, "c2", "find", json!({ "fail": "PERMANENT" })).await;
    before.orchestrator.count("tokens", 12);
    before.orchestrator.measure("answer", Duration::from_millis(40));
    let minutes = before.orchestrator.minutes(0);
    before.orchestrator.save_minutes(i64::MAX).await.unwrap();
    before.orchestrator.store().close().await;
    drop(before);

    let after = with(open());
    assert_eq!(after.orchestrator.minutes(0), []);
    after.orchestrator.exchange_minutes().await.unwrap();
    assert_eq!(after.orchestrator.minutes(0), minutes);
    let session = after.session(Mode::Text).await;
    after.call(&session, "c3", "find", json!({})).await;
    let totals = after.orchestrator.tool_totals(0, &HashSet::from(["find"]));
    assert_eq!(totals.values().map(|find| find.calls).collect::<Vec<_>>(), [3]);
    after.orchestrator.exchange_minutes().await.unwrap();
    let again = after.orchestrator.tool_totals(0, &HashSet::from(["find"]));
    assert_eq!(again, totals, "minutes were added twice");
}
