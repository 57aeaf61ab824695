//! Every call is audited and counted, without secrets.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode};
use toolwright_orchestrator::CallRequest;
use toolwright_orchestrator::store::chain::{ChainError, Verifier};
use toolwright_orchestrator::store::{AuditRow, Backend};

use crate::support::{Fixture, Setup, call, retrieval, to_json};

async fn rows(fixture: &Fixture) -> Vec<AuditRow> {
    fixture.orchestrator.store().audit_rows(0, 1000).await.unwrap()
}

fn entries(rows: &[AuditRow]) -> Vec<Value> {
    rows.iter().map(|row| serde_json::from_str(&row.entry).unwrap()).collect()
}

fn verify(rows: &[AuditRow]) -> Result<u64, ChainError> {
    let mut verifier = Verifier::default();
    rows.iter().try_for_each(|row| verifier.check(row))?;
    Ok(verifier.rows)
}

#[tokio::test]
async fn calls_refusals_and_replays_are_audited() {
    let fixture =
        Setup::new().tool("act", json!({})).tool("voice_only", json!({ "allowedModes": ["voice"] })).build();
    let session = fixture.session(Mode::Text).await;
    let args = json!({ "intents": [{ "type": "SUPPRESS_AUDIO", "value": true }, { "type": "WHAT" }] });
    fixture.call(&session, "c1", "act", args.clone()).await;
    fixture.call(&session, "c1", "act", args).await;
    fixture.call(&session, "c2", "voice_only", json!({})).await;
    fixture.call(&session, "c3", "act", json!({ "fail": "PERMANENT" })).await;
    let rows = rows(&fixture).await;
    let entries = entries(&rows);
    let summary: Vec<(&str, &str, &str)> = entries
        .iter()
        .map(|entry| {
            (
                entry["event"].as_str().unwrap(),
                entry["executionId"].as_str().unwrap(),
                entry["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("called", "c1", "ok"),
            ("replayed", "c1", "ok"),
            ("refused", "c2", "MODE_RESTRICTED"),
            ("called", "c3", "PERMANENT")
        ]
    );
    let first = &entries[0];
    assert_eq!(
        (&first["session"], &first["clientId"], &first["tool"]),
        (&json!(session), &json!("client"), &json!("act"))
    );
    assert_eq!((&first["toolVersion"], &first["at"]), (&json!("1.0.0"), &json!(1_000_000)));
    assert_eq!(first["intents"], json!(["SUPPRESS_AUDIO", "unknown"]));
    assert_eq!(first["argsDigest"].as_str().unwrap().len(), 64);
    assert_eq!(verify(&rows), Ok(4));
}

#[tokio::test]
async fn a_call_whose_arguments_cannot_be_read_is_audited_and_counted() {
    let secret =
        json!({ "jsonSchema": { "type": "object", "properties": { "password": { "writeOnly": true } } } });
    let fixture = Setup::new().tool("act", json!({})).tool("login", secret).build();
    let session = fixture.session(Mode::Text).await;
    let unreadable = |id: &str, tool: &str| {
        let failure = Failure::new(ErrorKind::Validation, "The arguments are not readable: not JSON.");
        let text = json!(r#"{"password": "pw-123456""#);
        CallRequest::new(&session, call(id, tool, text)).refused(failure)
    };
    for (id, tool) in [("c1", "act"), ("c2", "login")] {
        let envelope = to_json(&fixture.orchestrator.call(unreadable(id, tool)).await);
        assert_eq!(envelope["error"]["type"], "VALIDATION");
        assert_eq!(
            (&envelope["meta"]["toolVersion"], &envelope["meta"]["executionId"]),
            (&json!("1.0.0"), &json!(id))
        );
        assert!(envelope["meta"]["registryVersion"].as_str().is_some_and(|version| !version.is_empty()));
    }
    assert_eq!(fixture.done.runs.load(Ordering::SeqCst), 0);
    let rows = rows(&fixture).await;
    let summary: Vec<Value> = entries(&rows).iter().map(|entry| entry["event"].clone()).collect();
    assert_eq!(summary, ["refused", "refused"]);
    let metrics = fixture.orchestrator.metrics();
    let refusals: Vec<_> = metrics.iter().map(|tool| (tool.tool.as_str(), tool.refusals)).collect();
    assert_eq!(refusals, [("act", 1), ("login", 1)]);
    // The text may have the secret anywhere, so nothing of it is kept.
    let history = fixture.orchestrator.call_history(&session, "c2").await.unwrap().unwrap();
    assert_eq!(history.args.as_deref(), Some(r#""[redacted]""#));
}

#[tokio::test]
async fn a_call_in_an_unknown_session_is_audited_with_the_current_versions() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let envelope = fixture.call("nope", "c1", "act", json!({})).await;
    assert_eq!(envelope["error"]["type"], "SESSION_INACTIVE");
    assert_eq!(envelope["meta"]["toolVersion"], "1.0.0");
    let entries = entries(&rows(&fixture).await);
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!((&entry["event"], &entry["session"]), (&json!("refused"), &json!("nope")));
    assert_eq!(entry["registryVersion"], envelope["meta"]["registryVersion"]);
}

#[tokio::test]
async fn edits_gaps_and_reordering_are_detected() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    for n in 0..20 {
        fixture.call(&session, "", "act", json!({ "n": n })).await;
    }
    let rows = rows(&fixture).await;
    assert_eq!(verify(&rows), Ok(20));
    for at in 0..rows.len() {
        let mut changed = rows.clone();
        changed[at].entry = changed[at].entry.replace("\"ok\"", "\"no\"");
        assert_eq!(verify(&changed), Err(ChainError::Edited { number: at as u64 + 1 }));
        let mut missing = rows.clone();
        missing.remove(at);
        // A missing last row is only visible against the head.
        assert_eq!(verify(&missing).is_err(), at + 1 < rows.len());
        if at > 0 {
            let mut moved = rows.clone();
            moved.swap(at - 1, at);
            assert!(verify(&moved).is_err());
        }
    }
}

#[tokio::test]
async fn secrets_reach_neither_envelope_nor_audit_log() {
    let fields = json!({ "jsonSchema": { "type": "object",
        "properties": { "password": { "type": "string", "writeOnly": true }, "fail": {}, "n": {} } } });
    let fixture = Setup::new().tool("act", fields).build();
    let session = fixture.session(Mode::Text).await;
    let envelope =
        fixture.call(&session, "c1", "act", json!({ "password": "hunter22", "fail": "PERMANENT" })).await;
    assert_eq!(envelope["error"]["message"], "failed with \"[redacted]\"");
    fixture.call(&session, "c2", "act", json!({ "password": "other secret", "fail": "PERMANENT" })).await;
    let rows = rows(&fixture).await;
    let text = serde_json::to_string(&rows).unwrap();
    assert!(!text.contains("hunter22") && !text.contains("other secret"), "{text}");
    // The digest does not depend on the secret, so the secret cannot be guessed from it.
    let entries = entries(&rows);
    assert_eq!(entries[0]["argsDigest"], entries[1]["argsDigest"]);
    assert_eq!(fixture.done.args()[0]["password"], "hunter22");
}

#[tokio::test]
async fn metrics_count_calls_replays_refusals_and_errors() {
    let fixture = Setup::new()
        .tool("act", json!({ "latencyBudgetMs": 0.000_001 }))
        .tool("find", retrieval())
        .policy(|policy| policy.text.limits.retrieval_soft_limit_ms = 0)
        .build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "act", json!({})).await;
    fixture.call(&session, "c1", "act", json!({})).await;
    fixture.call(&session, "c2", "act", json!({ "fail": "CONFLICT" })).await;
    for n in 0..6 {
        fixture.call(&session, &format!("f{n}"), "find", json!({})).await;
    }
    let metrics = fixture.orchestrator.metrics();
    let find = metrics.iter().find(|row| row.tool == "find").unwrap();
    let act = metrics.iter().find(|row| row.tool == "act").unwrap();
    assert_eq!((act.calls, act.replays, act.refusals), (2, 1, 0));
    // The tool's own budget and the soft limit of retrieval in the mode are counted apart.
    assert_eq!((act.overruns, act.soft_limit_overruns), (2, 0));
    assert_eq!((find.overruns, find.soft_limit_overruns), (0, 5));
    assert_eq!(act.errors.get("CONFLICT"), Some(&1));
    assert_eq!((find.calls, find.refusals), (5, 1));
    assert_eq!(find.errors.get("BUDGET_EXCEEDED"), Some(&1));
    assert!(act.p50 > 0.0 && act.p99 >= act.p50);
}
