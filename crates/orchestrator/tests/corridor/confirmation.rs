//! A person's yes cannot be forged, used twice, swapped or outlived.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use toolwright_contract::Mode;
use toolwright_orchestrator::confirm::{Answerer, Error, Proof};
use toolwright_orchestrator::store::sqlite::{self, Fault, Faults};
use toolwright_orchestrator::store::{Backend, Decision, Sqlite, Store};

use crate::support::{Desk, Setup, call, shown, until};

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

/// Asks, and returns the question with its token.
async fn ask(desk: &Desk, session: &str, id: &str, tool: &str, args: Value) -> Value {
    let envelope = desk.call(session, id, tool, args).await;
    assert_eq!(envelope["error"]["type"], "CONFIRMATION_REQUIRED", "{envelope}");
    assert_eq!(envelope["error"]["partialSideEffects"], false);
    envelope["error"]["details"]["confirmation_request"].clone()
}

fn answerer<'a>(question: &'a Value, session: &'a str) -> Answerer<'a> {
    let token = question["confirmation_token"].as_str().unwrap();
    Answerer { token, proof: Proof::Token, session, client_id: "client", by: "mira" }
}

#[tokio::test]
async fn a_question_says_what_would_be_done_and_nothing_is_done() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let question = ask(&desk, &session, "c1", "pay", json!({ "amount": 50, "password": "hunter22" })).await;
    assert_eq!((&question["tool"], &question["preview"]), (&json!("pay"), &json!("Pay 50 to Mira")));
    assert_eq!(question["args"], json!({ "amount": 50, "password": "[redacted]", "to": "Mira" }));
    assert_eq!(question["expires_at"], 1_000_000 + 600_000);
    assert_eq!(desk.done.runs(), 0);
    assert_eq!(desk.outcome(&session, "c2", "pay", json!({ "amount": 5 })).await, "ok");
    desk.clock.advance(1);
    ask(&desk, &session, "c3", "always", json!({})).await;
    desk.clock.advance(1);
    ask(&desk, &session, "c4", "broken", json!({})).await;
    assert_eq!(desk.outcome(&session, "c5", "pay", json!({ "amount": "x" })).await, "VALIDATION");
    let waiting = desk.orchestrator.pending(Some(&session)).await.unwrap();
    assert_eq!(waiting.iter().map(|asked| asked.execution.as_str()).collect::<Vec<_>>(), ["c1", "c3", "c4"]);
}

#[tokio::test]
async fn an_approved_call_runs_once_and_its_envelope_is_delivered() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let mut deliveries = desk.orchestrator.deliveries();
    let question = ask(&desk, &session, "c1", "pay", json!({ "amount": 50 })).await;
    let envelope = desk.orchestrator.approve(&answerer(&question, &session), None).await.unwrap();
    assert!(envelope.is_ok(), "{envelope:?}");
    assert_eq!(desk.done.args(), [json!({ "amount": 50, "to": "Mira" })]);
    let delivery = deliveries.recv().await.unwrap();
    assert_eq!((delivery.session, delivery.execution_id.as_str()), (session.clone(), "c1"));
    assert_eq!(delivery.envelope, envelope);
    let again = desk.orchestrator.approve(&answerer(&question, &session), None).await;
    assert_eq!(again.unwrap_err(), Error::Refused);
    let resent = desk.call(&session, "c1", "pay", json!({ "amount": 50 })).await;
    assert_eq!((&resent["ok"], &resent["meta"]["replayed"]), (&json!(true), &json!(true)));
    assert_eq!(desk.done.runs(), 1);
}

#[tokio::test]
async fn of_many_approvals_at_once_one_counts() {
    let desk = Arc::new(careful().desk());
    let session = desk.session(Mode::Text).await;
    let question = Arc::new(ask(&desk, &session, "c1", "always", json!({})).await);
    let approvals: Vec<_> = (0..64)
        .map(|_| {
            let (desk, question, session) = (Arc::clone(&desk), Arc::clone(&question), session.clone());
            tokio::spawn(async move {
                desk.orchestrator.approve(&answerer(&question, &session), None).await.is_ok()
            })
        })
        .collect();
    let mut counted = 0;
    for approval in approvals {
        counted += usize::from(approval.await.unwrap());
    }
    assert_eq!((counted, desk.done.runs()), (1, 1));
}

#[tokio::test]
async fn forged_replayed_expired_and_swapped_tokens_are_refused() {
    let desk = careful().desk();
    let (session, other) = (desk.session(Mode::Text).await, desk.session(Mode::Text).await);
    let question = ask(&desk, &session, "c1", "always", json!({})).await;
    let second = ask(&desk, &session, "c2", "always", json!({ "n": 2 })).await;
    let token = question["confirmation_token"].as_str().unwrap().to_owned();
    let (id, secret) = token.split_once('.').unwrap();
    let (second_id, _) = second["confirmation_token"].as_str().unwrap().split_once('.').unwrap();
    let mut forged: Vec<String> = vec![
        String::new(),
        ".".to_owned(),
        id.to_owned(),
        format!("{id}."),
        format!("{id}.{}", "0".repeat(64)),
        format!("{second_id}.{secret}"),
        format!("conf_0.{secret}"),
        format!("{token}0"),
        token.to_uppercase(),
    ];
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] ^= 1;
        forged.push(String::from_utf8(bytes).unwrap());
    }
    let refuse = async |token: &str, session: &str, client: &str| {
        let answerer = Answerer { token, proof: Proof::Token, session, client_id: client, by: "x" };
        assert_eq!(desk.orchestrator.approve(&answerer, None).await.unwrap_err(), Error::Refused, "{token}");
        assert_eq!(desk.orchestrator.reject(&answerer, None).await.unwrap_err(), Error::Refused, "{token}");
    };
    for token in &forged {
        refuse(token, &session, "client").await;
    }
    refuse(&token, &other, "client").await;
    refuse(&token, &session, "somebody else").await;
    assert_eq!(desk.done.runs(), 0);
    desk.clock.advance(600_000);
    refuse(&token, &session, "client").await;
    assert_eq!(desk.done.runs(), 0);
}

#[tokio::test]
async fn a_transport_that_knows_its_user_needs_no_secret_but_the_right_session() {
    let desk = careful().desk();
    let session = desk.session(Mode::Voice).await;
    let question = ask(&desk, &session, "c1", "always", json!({})).await;
    let id = question["confirmation_id"].as_str().unwrap();
    let answerer =
        |session| Answerer { token: id, proof: Proof::Transport, session, client_id: "client", by: "voice" };
    let other = desk.session(Mode::Voice).await;
    assert_eq!(desk.orchestrator.approve(&answerer(&other), None).await.unwrap_err(), Error::Refused);
    assert!(desk.orchestrator.approve(&answerer(&session), None).await.unwrap().is_ok());
}

#[tokio::test]
async fn edited_arguments_are_validated_again_and_are_the_ones_that_run() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let question = ask(&desk, &session, "c1", "pay", json!({ "amount": 50 })).await;
    let answerer = answerer(&question, &session);
    let wrong = desk.orchestrator.approve(&answerer, Some(json!({ "amount": 5000 }))).await.unwrap_err();
    assert!(matches!(&wrong, Error::Edited(why) if why.contains("/amount")), "{wrong}");
    let envelope =
        desk.orchestrator.approve(&answerer, Some(json!({ "amount": 60, "to": "Ada" }))).await.unwrap();
    assert!(envelope.is_ok());
    assert_eq!(desk.done.args(), [json!({ "amount": 60, "to": "Ada" })]);
    assert_eq!(desk.outcome(&session, "c1", "pay", json!({ "amount": 50 })).await, "ok");
    assert_eq!(desk.done.runs(), 1);
}

#[tokio::test]
async fn a_rejected_or_forgotten_question_ends_in_an_envelope_too() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let mut deliveries = desk.orchestrator.deliveries();
    let question = ask(&desk, &session, "c1", "always", json!({})).await;
    let reason = Some("too dear".to_owned());
    let envelope = desk.orchestrator.reject(&answerer(&question, &session), reason).await.unwrap();
    assert_eq!(shown(&envelope)["error"]["message"], "The user declined this call: too dear");
    assert_eq!(deliveries.recv().await.unwrap().envelope, envelope);
    assert_eq!(
        desk.orchestrator.approve(&answerer(&question, &session), None).await.unwrap_err(),
        Error::Refused
    );

    let resent = desk.call(&session, "c1", "always", json!({})).await;
    assert_eq!((&resent["error"]["type"], &resent["meta"]["replayed"]), (&json!("PERMANENT"), &json!(true)));

    ask(&desk, &session, "c2", "always", json!({})).await;
    desk.clock.advance(600_000);
    desk.orchestrator.sweep().await.unwrap();
    let late = deliveries.recv().await.unwrap();
    assert_eq!(shown(&late.envelope)["error"]["message"], "Nobody approved this call in time.");
    assert_eq!(desk.orchestrator.pending(None).await.unwrap(), []);
    assert_eq!(desk.done.runs(), 0);
}

#[tokio::test]
async fn a_question_that_is_put_again_keeps_its_place_and_only_the_newest_token_opens_it() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let first = ask(&desk, &session, "c1", "always", json!({})).await;
    let second = ask(&desk, &session, "c1", "always", json!({})).await;
    assert_eq!(first["confirmation_id"], second["confirmation_id"]);
    assert_eq!(desk.orchestrator.pending(None).await.unwrap().len(), 1);
    assert_eq!(
        desk.orchestrator.approve(&answerer(&first, &session), None).await.unwrap_err(),
        Error::Refused
    );
    assert!(desk.orchestrator.approve(&answerer(&second, &session), None).await.unwrap().is_ok());
}

#[tokio::test]
async fn not_asking_again_is_off_unless_policy_allows_it_and_holds_for_one_session_and_tool() {
    for (allowed, expected) in [(false, "CONFIRMATION_REQUIRED"), (true, "ok")] {
        let desk = careful().policy(|policy| policy.may_remember = allowed).desk();
        let (session, other) = (desk.session(Mode::Text).await, desk.session(Mode::Text).await);
        let question = ask(&desk, &session, "c1", "always", json!({})).await;
        desk.orchestrator.approve_and_remember(&answerer(&question, &session)).await.unwrap();
        assert_eq!(desk.outcome(&session, "c2", "always", json!({})).await, expected);
        ask(&desk, &session, "c3", "broken", json!({})).await;
        ask(&desk, &other, "c1", "always", json!({})).await;
    }
}

#[tokio::test]
async fn a_yes_is_remembered_also_when_whoever_said_it_has_gone() {
    let desk = Arc::new(careful().policy(|policy| policy.may_remember = true).desk());
    let session = desk.session(Mode::Text).await;
    let question = ask(&desk, &session, "c1", "always", json!({ "wait": true })).await;
    let (theirs, of) = (Arc::clone(&desk), session.clone());
    let approving = tokio::spawn(async move {
        let _ = theirs.orchestrator.approve_and_remember(&answerer(&question, &of)).await;
    });
    until(|| desk.done.runs() == 1).await;
    approving.abort();
    let _ = approving.await;
    desk.open.add_permits(1);
    assert!(desk.orchestrator.at_rest(Duration::from_secs(30)).await);
    assert_eq!(desk.outcome(&session, "c2", "always", json!({})).await, "ok");
}

#[tokio::test]
async fn an_operators_rule_may_approve_without_asking() {
    let rule = Some("session.clientId == \"robot\" && args.amount < 100".to_owned());
    let desk = careful().policy(|policy| policy.approve_when = rule).desk();
    let robot = desk.session_of("robot", Mode::Text, &[]).await;
    assert_eq!(desk.outcome(&robot, "c1", "pay", json!({ "amount": 50 })).await, "ok");
    ask(&desk, &robot, "c2", "pay", json!({ "amount": 500 })).await;
    // It cannot be evaluated: nobody is spared the question.
    ask(&desk, &robot, "c3", "always", json!({})).await;
    ask(&desk, &desk.session(Mode::Text).await, "c1", "pay", json!({ "amount": 50 })).await;
}

#[tokio::test]
async fn what_the_model_reads_has_no_token() {
    let desk = careful().desk();
    let id = desk.session(Mode::Text).await;
    let envelope = desk.orchestrator.call(&id, call("c1", "always", json!({}))).await;
    let session = desk.orchestrator.session(&id).await.unwrap().unwrap();
    let told = desk.orchestrator.for_model(&session, &envelope);
    assert!(!told.to_string().contains("confirmation_token"), "{told}");
    assert_eq!(told["details"]["confirmation_request"]["tool"], "always");
}

#[tokio::test]
async fn an_approved_call_that_a_gate_refuses_is_over_and_never_runs_later() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let question = ask(&desk, &session, "c1", "always", json!({})).await;
    desk.orchestrator.end_session(&session).await.unwrap();
    let envelope = desk.orchestrator.approve(&answerer(&question, &session), None).await.unwrap();
    assert_eq!(shown(&envelope)["error"]["type"], "SESSION_INACTIVE");
    assert_eq!(desk.orchestrator.resume().await.unwrap(), 0);
    assert_eq!(desk.done.runs(), 0);
}

#[tokio::test]
async fn a_handler_never_sees_the_token_of_a_tool_that_it_calls() {
    let desk = careful().tool("outer", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    let outer = desk.call(&session, "c1", "outer", json!({ "call": "always", "with": {} })).await;
    assert_eq!(outer["data"]["error"]["type"], "CONFIRMATION_REQUIRED");
    assert!(!outer.to_string().contains("confirmation_token"), "{outer}");
}

#[tokio::test]
async fn an_editor_who_was_shown_a_placeholder_does_not_run_the_placeholder() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let question = ask(&desk, &session, "c1", "pay", json!({ "amount": 50, "password": "hunter22" })).await;
    let mut edited = question["args"].clone();
    edited["amount"] = json!(60);
    desk.orchestrator.approve(&answerer(&question, &session), Some(edited)).await.unwrap();
    assert_eq!(desk.done.args(), [json!({ "amount": 60, "password": "hunter22", "to": "Mira" })]);
}

async fn audited(desk: &Desk) -> Vec<Value> {
    let rows = desk.orchestrator.store().audit(0, 100).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(&row.entry).unwrap()).collect()
}

#[tokio::test]
async fn the_audit_tells_what_was_answered_of_which_version_and_what_ran() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let edited = ask(&desk, &session, "c1", "pay", json!({ "amount": 50 })).await;
    desk.orchestrator.approve(&answerer(&edited, &session), Some(json!({ "amount": 60 }))).await.unwrap();
    let as_asked = ask(&desk, &session, "c2", "pay", json!({ "amount": 50 })).await;
    desk.orchestrator.approve(&answerer(&as_asked, &session), None).await.unwrap();
    let rejected = ask(&desk, &session, "c3", "pay", json!({ "amount": 50 })).await;
    let no = desk.orchestrator.reject(&answerer(&rejected, &session), None).await.unwrap();
    ask(&desk, &session, "c4", "pay", json!({ "amount": 50 })).await;
    desk.clock.advance(600_000);
    desk.orchestrator.sweep().await.unwrap();
    desk.orchestrator.sweep().await.unwrap();

    let entries = audited(&desk).await;
    let version = &entries[0]["registryVersion"];
    assert!(version.as_str().unwrap().starts_with("1.0."), "{version}");
    assert!(entries.iter().all(|entry| entry["registryVersion"] == *version), "{entries:#?}");
    assert_eq!(shown(&no)["meta"]["registryVersion"], *version);
    let told: Vec<_> = entries.iter().map(|entry| (&entry["event"], &entry["executionId"])).collect();
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
    assert_eq!(told, expected.iter().map(|(event, id)| (event, id)).collect::<Vec<_>>());
    let digest = |at: usize| entries[at]["argsDigest"].clone();
    // What ran is what is told: other arguments, another digest.
    assert_ne!(digest(0), digest(2));
    assert_eq!(digest(3), digest(5));
    assert_eq!((&entries[1]["data"]["edited"], entries[4]["data"].get("edited")), (&json!(true), None));
}

#[tokio::test]
async fn a_question_that_is_asked_again_after_it_expired_is_told_to_have_expired() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let first = ask(&desk, &session, "c1", "always", json!({})).await;
    desk.clock.advance(600_000);
    let second = ask(&desk, &session, "c1", "always", json!({})).await;
    assert_ne!(first["confirmation_id"], second["confirmation_id"]);
    let events: Vec<_> = audited(&desk).await.iter().map(|entry| entry["event"].clone()).collect();
    assert_eq!(events, ["refused", "expired", "refused"]);
}

#[tokio::test]
async fn secrets_leave_the_record_with_the_question() {
    let desk = careful().desk();
    let session = desk.session(Mode::Text).await;
    let args = || json!({ "amount": 50, "password": "hunter22" });
    let mut ids = Vec::new();
    for (call, edited) in [("c1", None), ("c2", Some(json!({ "amount": 60, "password": "hunter23" })))] {
        let question = ask(&desk, &session, call, "pay", args()).await;
        desk.orchestrator.approve(&answerer(&question, &session), edited).await.unwrap();
        ids.push(question["confirmation_id"].as_str().unwrap().to_owned());
    }
    let question = ask(&desk, &session, "c3", "pay", args()).await;
    desk.orchestrator.reject(&answerer(&question, &session), None).await.unwrap();
    ids.push(question["confirmation_id"].as_str().unwrap().to_owned());
    let question = ask(&desk, &session, "c4", "pay", args()).await;
    ids.push(question["confirmation_id"].as_str().unwrap().to_owned());
    desk.clock.advance(600_000);
    desk.orchestrator.sweep().await.unwrap();
    for id in ids {
        let kept = desk.orchestrator.store().confirmation(&id).await.unwrap().unwrap();
        let text = serde_json::to_string(&*kept).unwrap();
        assert!(!text.contains("hunter2") && text.contains("[redacted]"), "{text}");
    }
    let ran: Vec<_> = desk.done.args().iter().map(|args| args["password"].clone()).collect();
    assert_eq!(ran, ["hunter22", "hunter23"]);
}

#[tokio::test]
async fn a_session_hears_of_its_own_answers_and_what_was_missed_is_in_the_record() {
    let desk = careful().desk();
    let (one, two) = (desk.session(Mode::Text).await, desk.session(Mode::Text).await);
    let (mut of_one, mut of_two) =
        (desk.orchestrator.deliveries_for(&one), desk.orchestrator.deliveries_for(&two));
    for n in 0..100 {
        let id = format!("c{n}");
        let question = ask(&desk, &one, &id, "always", json!({})).await;
        desk.orchestrator.approve(&answerer(&question, &one), None).await.unwrap();
    }
    assert!(matches!(of_one.recv().await, Err(RecvError::Lagged(36))));
    assert_eq!(of_one.recv().await.unwrap().execution_id, "c36");
    assert!(of_two.try_recv().is_err());
    let missed = desk.orchestrator.recorded(&one, "c0").await.unwrap().unwrap();
    assert_eq!(shown(&missed)["data"]["call"], "c0");
    assert_eq!(desk.orchestrator.recorded(&two, "c0").await.unwrap(), None);
}

#[tokio::test]
async fn an_approval_outlasts_a_store_that_is_away_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let options = sqlite::Options { faults: faults.clone(), ..sqlite::Options::default() };
    let store = Store::Sqlite(Sqlite::open(&dir.path().join("state.db"), options).unwrap());
    let desk = careful().desk_on(store);
    let session = desk.session(Mode::Text).await;
    let question = ask(&desk, &session, "c1", "always", json!({})).await;
    let id = question["confirmation_id"].as_str().unwrap();
    let yes = Decision::Approve { by: "mira".to_owned(), args: json!({}), shown: None };
    desk.orchestrator.store().decide(id, yes, 1_000_000).await.unwrap().unwrap();
    faults.set(Fault::CommitFails);
    assert_eq!(desk.orchestrator.resume().await.unwrap(), 1);
    assert_eq!(desk.done.runs(), 0);
    faults.set(Fault::None);
    assert_eq!(desk.orchestrator.resume().await.unwrap(), 1);
    assert_eq!(desk.done.runs(), 1);
    assert_eq!(desk.orchestrator.resume().await.unwrap(), 0);
}
