//! Approvals cannot be forged, reused, swapped or used after they expire.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::CallRequest;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error};
use toolwright_orchestrator::store::sqlite::{self, Fault, FaultSwitch};
use toolwright_orchestrator::store::{Backend, Decision, Sqlite, Store};

use crate::support::{Fixture, Setup, call, to_json, until};

fn careful() -> Setup {
    let rule = json!({ "when": "args.amount > 10", "preview": "Pay {{amount}} to {{to}}" });
    let schema = json!({ "type": "object", "additionalProperties": false, "properties": {
        "amount": { "type": "integer", "maximum": 1000 }, "to": { "type": "string", "default": "Mira" },
        "password": { "type": "string", "writeOnly": true } } });
    Setup::new()
        .tool("pay", json!({ "requiresConfirmation": rule, "jsonSchema": schema }))
        .tool("always", json!({ "requiresConfirmation": true }))
        .tool("broken", json!({ "requiresConfirmation": { "when": "args.absent > 1" } }))
}

/// Makes a call that needs approval, and returns its confirmation request.
async fn ask(fixture: &Fixture, session: &str, id: &str, tool: &str, args: Value) -> Value {
    let envelope = fixture.call(session, id, tool, args).await;
    assert_eq!(envelope["error"]["type"], "CONFIRMATION_REQUIRED", "{envelope}");
    assert_eq!(envelope["error"]["partialSideEffects"], false);
    envelope["error"]["details"]["confirmation_request"].clone()
}

fn approver<'a>(request: &'a Value, session: &'a str) -> Approver<'a> {
    let token = request["confirmation_token"].as_str().unwrap();
    Approver { token, proof: AnswerProof::Token, session, client_id: "client", by: "mira", principal: None }
}

#[tokio::test]
async fn a_confirmation_request_describes_the_call_and_nothing_runs() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let request = ask(&fixture, &session, "c1", "pay", json!({ "amount": 50, "password": "hunter22" })).await;
    assert_eq!((&request["tool"], &request["preview"]), (&json!("pay"), &json!("Pay 50 to Mira")));
    assert_eq!(request["args"], json!({ "amount": 50, "password": "[redacted]", "to": "Mira" }));
    assert_eq!(request["expires_at"], 1_000_000 + 600_000);
    assert_eq!(fixture.done.runs(), 0);
    assert_eq!(fixture.outcome(&session, "c2", "pay", json!({ "amount": 5 })).await, "ok");
    fixture.clock.advance(1);
    ask(&fixture, &session, "c3", "always", json!({})).await;
    fixture.clock.advance(1);
    ask(&fixture, &session, "c4", "broken", json!({})).await;
    assert_eq!(fixture.outcome(&session, "c5", "pay", json!({ "amount": "x" })).await, "VALIDATION");
    let waiting = fixture.orchestrator.pending_confirmations(Some(&session)).await.unwrap();
    assert_eq!(waiting.iter().map(|asked| asked.execution.as_str()).collect::<Vec<_>>(), ["c1", "c3", "c4"]);
}

#[tokio::test]
async fn an_approved_call_runs_once_and_its_envelope_is_delivered() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let mut deliveries = fixture.orchestrator.deferred_results();
    let request = ask(&fixture, &session, "c1", "pay", json!({ "amount": 50 })).await;
    let envelope = fixture.orchestrator.approve(&approver(&request, &session), None).await.unwrap();
    assert!(envelope.is_ok(), "{envelope:?}");
    assert_eq!(fixture.done.args(), [json!({ "amount": 50, "to": "Mira" })]);
    let delivery = deliveries.recv().await.unwrap();
    assert_eq!((delivery.session, delivery.execution_id.as_str()), (session.clone(), "c1"));
    assert_eq!(delivery.envelope, envelope);
    let again = fixture.orchestrator.approve(&approver(&request, &session), None).await;
    assert_eq!(again.unwrap_err(), Error::Answered);
    let resent = fixture.call(&session, "c1", "pay", json!({ "amount": 50 })).await;
    assert_eq!((&resent["ok"], &resent["meta"]["replayed"]), (&json!(true), &json!(true)));
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn of_many_concurrent_approvals_one_counts() {
    let fixture = Arc::new(careful().build());
    let session = fixture.session(Mode::Text).await;
    let request = Arc::new(ask(&fixture, &session, "c1", "always", json!({})).await);
    let approvals: Vec<_> = (0..64)
        .map(|_| {
            let (fixture, request, session) = (Arc::clone(&fixture), Arc::clone(&request), session.clone());
            tokio::spawn(async move {
                fixture.orchestrator.approve(&approver(&request, &session), None).await.is_ok()
            })
        })
        .collect();
    let mut counted = 0;
    for approval in approvals {
        counted += usize::from(approval.await.unwrap());
    }
    assert_eq!((counted, fixture.done.runs()), (1, 1));
}

/// Every token that differs from this one in one bit of each character, and others that are wrong.
fn forged_tokens(token: &str, other_id: &str) -> Vec<String> {
    let (id, secret) = token.split_once('.').unwrap();
    let mut forged = vec![
        String::new(),
        ".".to_owned(),
        id.to_owned(),
        format!("{id}."),
        format!("{id}.{}", "0".repeat(64)),
        format!("{other_id}.{secret}"),
        format!("conf_0.{secret}"),
        format!("{token}0"),
        token.to_uppercase(),
    ];
    for at in 0..token.len() {
        let mut bytes = token.as_bytes().to_vec();
        bytes[at] ^= 1;
        forged.push(String::from_utf8(bytes).unwrap());
    }
    forged
}

#[tokio::test]
async fn forged_replayed_expired_and_swapped_tokens_are_refused() {
    let fixture = careful().build();
    let (session, other) = (fixture.session(Mode::Text).await, fixture.session(Mode::Text).await);
    let request = ask(&fixture, &session, "c1", "always", json!({})).await;
    let second = ask(&fixture, &session, "c2", "always", json!({ "n": 2 })).await;
    let token = request["confirmation_token"].as_str().unwrap().to_owned();
    let (id, _) = token.split_once('.').unwrap();
    let (second_id, _) = second["confirmation_token"].as_str().unwrap().split_once('.').unwrap();
    let forged = forged_tokens(&token, second_id);
    let refuse = async |token: &str, session: &str, client: &str| {
        let approver = Approver {
            token,
            proof: AnswerProof::Token,
            session,
            client_id: client,
            by: "x",
            principal: None,
        };
        let approved = fixture.orchestrator.approve(&approver, None).await.unwrap_err();
        assert_eq!(fixture.orchestrator.reject(&approver, None).await.unwrap_err(), approved, "{token}");
        approved
    };
    for token in &forged {
        let refused = refuse(token, &session, "client").await;
        let known = token.split('.').next().unwrap();
        let expected = match token.contains('.') {
            _ if known != id && known != second_id => Error::Refused,
            true => Error::WrongToken,
            false => Error::TokenRequired,
        };
        assert_eq!(refused, expected, "{token}");
    }
    assert_eq!(refuse(&token, &other, "client").await, Error::Refused);
    assert_eq!(refuse(&token, &session, "other client").await, Error::Refused);
    assert_eq!(fixture.done.runs(), 0);
    fixture.clock.advance(600_000);
    assert_eq!(refuse(&token, &session, "client").await, Error::Expired);
    assert_eq!(fixture.done.runs(), 0);
}

#[tokio::test]
async fn a_transport_that_authenticates_its_user_needs_no_secret_but_the_right_session() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Voice).await;
    let request = ask(&fixture, &session, "c1", "always", json!({})).await;
    let id = request["confirmation_id"].as_str().unwrap();
    let approver = |session| Approver {
        token: id,
        proof: AnswerProof::Transport,
        session,
        client_id: "client",
        by: "voice",
        principal: None,
    };
    let other = fixture.session(Mode::Voice).await;
    assert_eq!(fixture.orchestrator.approve(&approver(&other), None).await.unwrap_err(), Error::Refused);
    assert!(fixture.orchestrator.approve(&approver(&session), None).await.unwrap().is_ok());
}

#[tokio::test]
async fn edited_arguments_are_validated_again_and_are_the_ones_that_run() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let request = ask(&fixture, &session, "c1", "pay", json!({ "amount": 50 })).await;
    let approver = approver(&request, &session);
    let wrong = fixture.orchestrator.approve(&approver, Some(json!({ "amount": 5000 }))).await.unwrap_err();
    assert!(matches!(&wrong, Error::Edited(why) if why.contains("/amount")), "{wrong}");
    let envelope =
        fixture.orchestrator.approve(&approver, Some(json!({ "amount": 60, "to": "Ada" }))).await.unwrap();
    assert!(envelope.is_ok());
    assert_eq!(fixture.done.args(), [json!({ "amount": 60, "to": "Ada" })]);
    assert_eq!(fixture.outcome(&session, "c1", "pay", json!({ "amount": 50 })).await, "ok");
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn a_rejected_or_expired_request_ends_in_an_envelope() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let mut deliveries = fixture.orchestrator.deferred_results();
    let request = ask(&fixture, &session, "c1", "always", json!({})).await;
    let reason = Some("too dear".to_owned());
    let envelope = fixture.orchestrator.reject(&approver(&request, &session), reason).await.unwrap();
    assert_eq!(to_json(&envelope)["error"]["message"], "The user declined this call: too dear");
    let entries = audited(&fixture).await;
    let rejected = entries.iter().find(|entry| entry["event"] == "rejected").unwrap();
    assert_eq!(rejected["data"]["reason"], "too dear");
    assert_eq!(deliveries.recv().await.unwrap().envelope, envelope);
    assert_eq!(
        fixture.orchestrator.approve(&approver(&request, &session), None).await.unwrap_err(),
        Error::Answered
    );

    let resent = fixture.call(&session, "c1", "always", json!({})).await;
    assert_eq!((&resent["error"]["type"], &resent["meta"]["replayed"]), (&json!("PERMANENT"), &json!(true)));

    ask(&fixture, &session, "c2", "always", json!({})).await;
    fixture.clock.advance(600_000);
    fixture.orchestrator.sweep().await.unwrap();
    let late = deliveries.recv().await.unwrap();
    assert_eq!(to_json(&late.envelope)["error"]["message"], "The call was not approved in time.");
    assert_eq!(fixture.orchestrator.pending_confirmations(None).await.unwrap(), []);
    assert_eq!(fixture.done.runs(), 0);
}

#[tokio::test]
async fn a_repeated_request_keeps_its_id_and_only_the_newest_token_answers_it() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let first = ask(&fixture, &session, "c1", "always", json!({})).await;
    let second = ask(&fixture, &session, "c1", "always", json!({})).await;
    assert_eq!(first["confirmation_id"], second["confirmation_id"]);
    assert_eq!(fixture.orchestrator.pending_confirmations(None).await.unwrap().len(), 1);
    assert_eq!(
        fixture.orchestrator.approve(&approver(&first, &session), None).await.unwrap_err(),
        Error::WrongToken
    );
    assert!(fixture.orchestrator.approve(&approver(&second, &session), None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_tool_is_approved_for_the_session_only_if_policy_allows_it() {
    for (allowed, expected) in [(false, "CONFIRMATION_REQUIRED"), (true, "ok")] {
        let fixture = careful().policy(|policy| policy.may_remember = allowed).build();
        let (session, other) = (fixture.session(Mode::Text).await, fixture.session(Mode::Text).await);
        let request = ask(&fixture, &session, "c1", "always", json!({})).await;
        fixture.orchestrator.approve_and_remember(&approver(&request, &session)).await.unwrap();
        assert_eq!(fixture.outcome(&session, "c2", "always", json!({})).await, expected);
        ask(&fixture, &session, "c3", "broken", json!({})).await;
        ask(&fixture, &other, "c1", "always", json!({})).await;
    }
}

#[tokio::test]
async fn an_approval_is_remembered_even_if_the_approver_disconnects() {
    let fixture = Arc::new(careful().policy(|policy| policy.may_remember = true).build());
    let session = fixture.session(Mode::Text).await;
    let request = ask(&fixture, &session, "c1", "always", json!({ "wait": true })).await;
    let (theirs, of) = (Arc::clone(&fixture), session.clone());
    let approving = tokio::spawn(async move {
        let _ = theirs.orchestrator.approve_and_remember(&approver(&request, &of)).await;
    });
    until(|| fixture.done.runs() == 1).await;
    approving.abort();
    let _ = approving.await;
    fixture.open.add_permits(1);
    assert!(fixture.orchestrator.wait_until_idle(Duration::from_secs(30)).await);
    assert_eq!(fixture.outcome(&session, "c2", "always", json!({})).await, "ok");
}

#[tokio::test]
async fn the_operators_rule_may_approve_calls() {
    let rule = Some("session.clientId == \"robot\" && args.amount < 100".to_owned());
    let fixture = careful().policy(|policy| policy.approve_when = rule).build();
    let robot = fixture.session_of("robot", Mode::Text, &[]).await;
    assert_eq!(fixture.outcome(&robot, "c1", "pay", json!({ "amount": 50 })).await, "ok");
    ask(&fixture, &robot, "c2", "pay", json!({ "amount": 500 })).await;
    // A rule that cannot be evaluated approves nothing.
    ask(&fixture, &robot, "c3", "always", json!({})).await;
    ask(&fixture, &fixture.session(Mode::Text).await, "c1", "pay", json!({ "amount": 50 })).await;
}

#[tokio::test]
async fn what_the_model_reads_has_no_token() {
    let fixture = careful().build();
    let id = fixture.session(Mode::Text).await;
    let envelope = fixture.orchestrator.call(CallRequest::new(&id, call("c1", "always", json!({})))).await;
    let session = fixture.orchestrator.session(&id).await.unwrap().unwrap();
    let summary = fixture.orchestrator.for_model(&session, &envelope);
    assert!(!summary.to_string().contains("confirmation_token"), "{summary}");
    assert_eq!(summary["details"]["confirmation_request"]["tool"], "always");
}

#[tokio::test]
async fn an_approved_call_that_a_gate_refuses_is_closed_and_never_runs() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let request = ask(&fixture, &session, "c1", "always", json!({})).await;
    fixture.orchestrator.end_session(&session).await.unwrap();
    let envelope = fixture.orchestrator.approve(&approver(&request, &session), None).await.unwrap();
    assert_eq!(to_json(&envelope)["error"]["type"], "SESSION_INACTIVE");
    assert_eq!(fixture.orchestrator.resume().await.unwrap(), 0);
    assert_eq!(fixture.done.runs(), 0);
}

#[tokio::test]
async fn a_handler_never_sees_the_token_of_a_tool_that_it_calls() {
    let fixture = careful().tool("outer", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    let outer = fixture.call(&session, "c1", "outer", json!({ "call": "always", "with": {} })).await;
    assert_eq!(outer["data"]["error"]["type"], "CONFIRMATION_REQUIRED");
    assert!(!outer.to_string().contains("confirmation_token"), "{outer}");
}

#[tokio::test]
async fn placeholders_in_edited_arguments_are_replaced_by_the_original_values() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let request = ask(&fixture, &session, "c1", "pay", json!({ "amount": 50, "password": "hunter22" })).await;
    let mut edited = request["args"].clone();
    edited["amount"] = json!(60);
    fixture.orchestrator.approve(&approver(&request, &session), Some(edited)).await.unwrap();
    assert_eq!(fixture.done.args(), [json!({ "amount": 60, "password": "hunter22", "to": "Mira" })]);
}

/// Approves as the session's principal, with these roles.
async fn approve_with_roles(
    fixture: &Fixture,
    request: &Value,
    session: &str,
    roles: &[&str],
) -> Result<Value, Error> {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    let principal = Principal { id: "client".to_owned(), org: Some("studio".to_owned()), roles };
    let approver = Approver { principal: Some(&principal), ..approver(request, session) };
    fixture.orchestrator.approve(&approver, None).await.map(|envelope| to_json(&envelope))
}

#[tokio::test]
async fn the_roles_of_the_approver_at_the_approval_decide() {
    let fields = json!({ "requiresConfirmation": true, "permissions": { "roles": ["editor"] } });
    let fixture = Setup::new().tool("publish", fields).build();
    let session = fixture.session_of("client", Mode::Text, &["editor"]).await;
    let request = ask(&fixture, &session, "c1", "publish", json!({})).await;
    let refused = approve_with_roles(&fixture, &request, &session, &[]).await.unwrap_err();
    assert!(matches!(refused, Error::Forbidden(_)), "{refused}");
    assert_eq!(fixture.done.runs(), 0);
    let envelope = approve_with_roles(&fixture, &request, &session, &["editor", "lead"]).await.unwrap();
    assert_eq!(envelope["ok"], true, "{envelope}");
    let id = request["confirmation_id"].as_str().unwrap();
    let stored = fixture.orchestrator.store().confirmation(id).await.unwrap().unwrap();
    assert_eq!(stored.roles, Some(vec!["editor".to_owned(), "lead".to_owned()]));
}

#[tokio::test]
async fn a_resumed_call_has_the_roles_of_the_approval() {
    let fields = json!({ "requiresConfirmation": true, "permissions": { "roles": ["editor"] } });
    let fixture = Setup::new().tool("publish", fields).build();
    let session = fixture.session_of("client", Mode::Text, &["editor"]).await;
    for (call, roles, expected) in [("c1", vec!["editor".to_owned()], 1), ("c2", Vec::new(), 1)] {
        let request = ask(&fixture, &session, call, "publish", json!({})).await;
        let id = request["confirmation_id"].as_str().unwrap();
        // The process stops after the decision.
        let (by, args) = ("client".into(), json!({}));
        let yes = Decision::Approve { by, args, redacted_args: None, edits: Vec::new(), roles: Some(roles) };
        fixture.orchestrator.store().decide_confirmation(id, yes, 1_000_000).await.unwrap().unwrap();
        assert_eq!(fixture.orchestrator.resume().await, Ok(1));
        assert_eq!(fixture.done.runs(), expected, "{call}");
    }
}

async fn audited(fixture: &Fixture) -> Vec<Value> {
    let rows = fixture.orchestrator.store().audit_rows(0, 100).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(&row.entry).unwrap()).collect()
}

#[tokio::test]
async fn answers_are_audited_with_the_version_and_the_digest_of_what_ran() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let edited = ask(&fixture, &session, "c1", "pay", json!({ "amount": 50 })).await;
    fixture.orchestrator.approve(&approver(&edited, &session), Some(json!({ "amount": 60 }))).await.unwrap();
    let as_asked = ask(&fixture, &session, "c2", "pay", json!({ "amount": 50 })).await;
    fixture.orchestrator.approve(&approver(&as_asked, &session), None).await.unwrap();
    let rejected = ask(&fixture, &session, "c3", "pay", json!({ "amount": 50 })).await;
    let no = fixture.orchestrator.reject(&approver(&rejected, &session), None).await.unwrap();
    ask(&fixture, &session, "c4", "pay", json!({ "amount": 50 })).await;
    fixture.clock.advance(600_000);
    fixture.orchestrator.sweep().await.unwrap();
    fixture.orchestrator.sweep().await.unwrap();

    let entries = audited(&fixture).await;
    let version = &entries[0]["registryVersion"];
    assert!(version.as_str().unwrap().starts_with("1.0."), "{version}");
    assert!(entries.iter().all(|entry| entry["registryVersion"] == *version), "{entries:#?}");
    assert_eq!(to_json(&no)["meta"]["registryVersion"], *version);
    let summary: Vec<_> = entries.iter().map(|entry| (&entry["event"], &entry["executionId"])).collect();
    let expected = [
        ("refused", "c1"),
        ("approved", "c1"),
        ("called", "c1"),
        ("refused", "c2"),
        ("approved", "c2"),
        ("called", "c2"),
        ("refused", "c3"),
        ("rejected", "c3"),
        ("refused", "c4"),
        ("expired", "c4"),
    ];
    let expected: Vec<_> = expected.iter().map(|(event, id)| (json!(event), json!(id))).collect();
    assert_eq!(summary, expected.iter().map(|(event, id)| (event, id)).collect::<Vec<_>>());
    let digest = |at: usize| entries[at]["argsDigest"].clone();
    // Edited arguments have another digest.
    assert_ne!(digest(0), digest(2));
    assert_eq!(digest(3), digest(5));
    assert_eq!((&entries[1]["data"]["edited"], entries[4]["data"].get("edited")), (&json!(true), None));
}

#[tokio::test]
async fn a_request_that_is_repeated_after_it_expired_is_audited_as_expired() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let first = ask(&fixture, &session, "c1", "always", json!({})).await;
    fixture.clock.advance(600_000);
    let second = ask(&fixture, &session, "c1", "always", json!({})).await;
    assert_ne!(first["confirmation_id"], second["confirmation_id"]);
    let events: Vec<_> = audited(&fixture).await.iter().map(|entry| entry["event"].clone()).collect();
    assert_eq!(events, ["refused", "expired", "refused"]);
}

#[tokio::test]
async fn secrets_leave_the_record_when_the_request_is_closed() {
    let fixture = careful().build();
    let session = fixture.session(Mode::Text).await;
    let args = || json!({ "amount": 50, "password": "hunter22" });
    let mut ids = Vec::new();
    for (call, edited) in [("c1", None), ("c2", Some(json!({ "amount": 60, "password": "hunter23" })))] {
        let request = ask(&fixture, &session, call, "pay", args()).await;
        fixture.orchestrator.approve(&approver(&request, &session), edited).await.unwrap();
        ids.push(request["confirmation_id"].as_str().unwrap().to_owned());
    }
    let request = ask(&fixture, &session, "c3", "pay", args()).await;
    fixture.orchestrator.reject(&approver(&request, &session), None).await.unwrap();
    ids.push(request["confirmation_id"].as_str().unwrap().to_owned());
    let request = ask(&fixture, &session, "c4", "pay", args()).await;
    ids.push(request["confirmation_id"].as_str().unwrap().to_owned());
    fixture.clock.advance(600_000);
    fixture.orchestrator.sweep().await.unwrap();
    for id in ids {
        let kept = fixture.orchestrator.store().confirmation(&id).await.unwrap().unwrap();
        let text = serde_json::to_string(&*kept).unwrap();
        assert!(!text.contains("hunter2") && text.contains("[redacted]"), "{text}");
    }
    let ran: Vec<_> = fixture.done.args().iter().map(|args| args["password"].clone()).collect();
    assert_eq!(ran, ["hunter22", "hunter23"]);
}

#[tokio::test]
async fn a_session_receives_its_own_results_and_missed_ones_are_recorded() {
    let fixture = careful().build();
    let (one, two) = (fixture.session(Mode::Text).await, fixture.session(Mode::Text).await);
    let (mut of_one, mut of_two) =
        (fixture.orchestrator.deferred_results_for(&one), fixture.orchestrator.deferred_results_for(&two));
    for n in 0..100 {
        let id = format!("c{n}");
        let request = ask(&fixture, &one, &id, "always", json!({})).await;
        fixture.orchestrator.approve(&approver(&request, &one), None).await.unwrap();
    }
    assert!(matches!(of_one.recv().await, Err(RecvError::Lagged(36))));
    assert_eq!(of_one.recv().await.unwrap().execution_id, "c36");
    assert!(of_two.try_recv().is_err());
    let missed = fixture.orchestrator.recorded_envelope(&one, "c0").await.unwrap().unwrap();
    assert_eq!(to_json(&missed)["data"]["call"], "c0");
    assert_eq!(fixture.orchestrator.recorded_envelope(&two, "c0").await.unwrap(), None);
}

#[tokio::test]
async fn an_approval_outlasts_a_short_outage_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let faults = FaultSwitch::default();
    let options = sqlite::Options { faults: faults.clone(), ..sqlite::Options::default() };
    let store = Store::Sqlite(Sqlite::open(&dir.path().join("state.db"), options).unwrap());
    let fixture = careful().build_on(store);
    let session = fixture.session(Mode::Text).await;
    let request = ask(&fixture, &session, "c1", "always", json!({})).await;
    let id = request["confirmation_id"].as_str().unwrap();
    let (by, args) = ("mira".into(), json!({}));
    let yes = Decision::Approve { by, args, redacted_args: None, edits: Vec::new(), roles: None };
    fixture.orchestrator.store().decide_confirmation(id, yes, 1_000_000).await.unwrap().unwrap();
    faults.set(Fault::CommitFails);
    assert_eq!(fixture.orchestrator.resume().await.unwrap(), 1);
    assert_eq!(fixture.done.runs(), 0);
    faults.set(Fault::None);
    assert_eq!(fixture.orchestrator.resume().await.unwrap(), 1);
    assert_eq!(fixture.done.runs(), 1);
    assert_eq!(fixture.orchestrator.resume().await.unwrap(), 0);
}
