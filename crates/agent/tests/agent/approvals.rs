//! Calls that need a person's approval: the turn pauses, and continues with the answer.

use std::sync::Arc;

use serde_json::json;
use toolwright_agent::{ApprovalAnswer, Error, EventBody, TurnOutcome};
use toolwright_contract::Principal;
use toolwright_orchestrator::confirmation_token::{self, AnswerProof, Approver};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, answer, outcome, results, text};
use crate::wire_forms::{self, PROVIDERS, calls};

fn mail() -> Reply {
    Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hello Jon" }))]))
}

async fn paused(provider: &str, then: &'static str) -> (ScriptedModel, Fixture, String) {
    let server = ScriptedModel::start([mail(), Reply::Step(wire_forms::text(then))]).await;
    let fixture = Fixture::new(&server, provider);
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Write to Jon").await;
    assert_eq!(outcome(&events), TurnOutcome::AwaitsApproval);
    assert!(!format!("{events:?}").contains("confirmation_token"));
    (server, fixture, session)
}

#[tokio::test]
async fn an_approved_call_runs_once_and_the_turn_continues() {
    for provider in PROVIDERS {
        let (server, fixture, session) = paused(provider, "Sent.").await;
        assert_eq!(fixture.runs(), []);
        assert_eq!(server.requests().len(), 1, "the model is not asked while a call waits");
        let approval = fixture.pending_approval(&session).await;
        let events = fixture.answer(&session, &approval, true).await;
        assert_eq!(
            (text(&events).as_str(), outcome(&events)),
            ("Sent.", TurnOutcome::Completed),
            "{provider}"
        );
        assert_eq!(fixture.runs(), [("mail_send".to_owned(), json!({ "text": "Hello Jon" }))]);
        // One turn: it starts once, and its pause is followed by the decision and the result.
        let kinds: Vec<bool> =
            events.iter().map(|event| matches!(event.body, EventBody::TurnStarted { .. })).collect();
        assert_eq!(kinds.iter().filter(|is_start| **is_start).count(), 1);
        let decided = events.iter().position(|event| {
            matches!(&event.body, EventBody::ApprovalDecided { approved: true, by, .. } if by == "mira")
        });
        let finished = events.iter().position(|event| matches!(&event.body, EventBody::ToolFinished { .. }));
        assert!(decided.unwrap() < finished.unwrap());
        // The same answer again changes nothing; another one is refused.
        assert!(!fixture.agent.answer(answer(&session, &approval, true)).await.unwrap().is_new);
        let other = fixture.agent.answer(answer(&session, &approval, false)).await;
        assert_eq!(other, Err(Error::Approval(confirmation_token::Error::Refused)));
        assert_eq!(fixture.runs().len(), 1);
    }
}

#[tokio::test]
async fn a_declined_call_does_not_run_and_the_model_learns_why() {
    let (server, fixture, session) = paused("anthropic", "I did not send it.").await;
    let approval = fixture.pending_approval(&session).await;
    let declined =
        ApprovalAnswer { reason: Some("wrong Jon".to_owned()), ..answer(&session, &approval, false) };
    let turn = fixture.agent.answer(declined).await.unwrap();
    let events = fixture.events(&session, turn.resumed_at).await;
    assert_eq!(text(&events), "I did not send it.");
    assert_eq!(fixture.runs(), []);
    let reply = fixture.reply(&session).await;
    let tool = reply.tools().next().unwrap();
    assert!(tool.result.as_ref().unwrap().is_declined);
    assert_eq!(tool.decision.as_ref().unwrap().reason.as_deref(), Some("wrong Jon"));
    assert!(server.requests()[1].body.to_string().contains("wrong Jon"));
}

#[tokio::test]
async fn edited_arguments_are_validated_and_then_run() {
    let (_, fixture, session) = paused("gemini", "Sent.").await;
    let approval = fixture.pending_approval(&session).await;
    let edited = |args| ApprovalAnswer { args: Some(args), ..answer(&session, &approval, true) };
    let invalid = fixture.agent.answer(edited(json!({ "txt": 1 }))).await;
    assert!(matches!(invalid, Err(Error::Approval(confirmation_token::Error::Edited(_)))), "{invalid:?}");
    let turn = fixture.agent.answer(edited(json!({ "text": "Dear Jon" }))).await.unwrap();
    fixture.events(&session, turn.start).await;
    assert_eq!(fixture.runs(), [("mail_send".to_owned(), json!({ "text": "Dear Jon" }))]);
}

#[tokio::test]
async fn answers_of_others_and_for_other_sessions_are_refused() {
    let (_, fixture, session) = paused("ollama", "Sent.").await;
    let approval = fixture.pending_approval(&session).await;
    let other = fixture.session().await;
    let stranger =
        Arc::new(Principal { id: "eve".to_owned(), org: Some("studio".to_owned()), roles: Vec::new() });
    let refused = Err(Error::Approval(confirmation_token::Error::Refused));
    assert_eq!(fixture.agent.answer(answer(&other, &approval, true)).await, refused);
    assert_eq!(fixture.agent.answer(answer(&session, "conf_unknown", true)).await, refused);
    // The bare id, which operators see, approves nothing; neither does a guessed key.
    let bare = approval.split('.').next().unwrap();
    let guessed = format!("{bare}.{}", "0".repeat(32));
    for forged in [bare, &guessed, &approval[..approval.len() - 1]] {
        assert_eq!(fixture.agent.answer(answer(&session, forged, true)).await, refused, "{forged}");
    }
    let by_stranger = ApprovalAnswer { principal: stranger, ..answer(&session, &approval, true) };
    assert_eq!(fixture.agent.answer(by_stranger).await, refused);
    fixture.clock.advance(11 * 60 * 1000);
    assert_eq!(fixture.agent.answer(answer(&session, &approval, true)).await, refused);
    assert_eq!(fixture.runs(), []);
    // The history says that it was not approved in time.
    let reply = fixture.reply(&session).await;
    assert!(
        reply.tools().next().unwrap().result.as_ref().unwrap().content["error"]
            .as_str()
            .unwrap()
            .contains("in time")
    );
}

#[tokio::test]
async fn the_id_of_an_approval_is_bound_to_session_and_principal_in_the_store() {
    let (server, fixture, session) = paused("anthropic", "Sent.").await;
    let approval = fixture.pending_approval(&session).await;
    let (own, other_session) = (Fixture::principal(), fixture.session().await);
    let eve = Principal { id: "eve".to_owned(), ..Fixture::principal() };
    let other_org = Principal { org: None, ..Fixture::principal() };
    let bare = approval.split('.').next().unwrap();
    let approve = |token: &str, session: &str, principal: Option<&Principal>| {
        let (orchestrator, token, session) =
            (fixture.orchestrator.clone(), token.to_owned(), session.to_owned());
        let principal = principal.cloned();
        async move {
            let approver = Approver {
                token: &token,
                proof: AnswerProof::Conversation,
                session: &session,
                client_id: "browser",
                by: "mira",
                principal: principal.as_ref(),
            };
            orchestrator.approve(&approver, None).await.map(|envelope| envelope.is_ok())
        }
    };
    let refused = Err(confirmation_token::Error::Refused);
    assert_eq!(approve(&approval, &session, Some(&eve)).await, refused);
    assert_eq!(approve(&approval, &session, Some(&other_org)).await, refused);
    assert_eq!(approve(&approval, &session, None).await, refused);
    assert_eq!(approve(&approval, &other_session, Some(&own)).await, refused);
    assert_eq!(approve(bare, &session, Some(&own)).await, refused);
    assert_eq!(approve(&format!("{bare}."), &session, Some(&own)).await, refused);
    assert_eq!(fixture.runs(), []);
    assert_eq!(approve(&approval, &session, Some(&own)).await, Ok(true));
    // It is no token: it approves nothing elsewhere. And the model has not seen it.
    let key = approval.split('.').nth(1).unwrap();
    assert!(server.requests().iter().all(|request| !request.body.to_string().contains(key)));
}

#[tokio::test]
async fn an_approval_through_another_wire_continues_the_turn() {
    let (_, fixture, session) = paused("openai-responses", "Sent.").await;
    let approval = fixture.pending_approval(&session).await;
    let approver = Approver {
        token: confirmation_token::request_id(&approval),
        proof: AnswerProof::Transport,
        session: &session,
        client_id: "browser",
        by: "operator",
        principal: None,
    };
    fixture.orchestrator.approve(&approver, None).await.unwrap();
    loop {
        let events = fixture.events(&session, 0).await;
        if outcome(&events) == TurnOutcome::Completed {
            assert_eq!(text(&events), "Sent.");
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.runs().len(), 1);
    let reply = fixture.reply(&session).await;
    assert_eq!(reply.tools().next().unwrap().decision.as_ref().unwrap().by, "operator");
}

#[tokio::test]
async fn a_new_message_may_come_while_a_call_waits() {
    let (server, fixture, session) = paused("openai-chat", "It still waits.").await;
    let approval = fixture.pending_approval(&session).await;
    let events = fixture.say(&session, "m2", "What about it?").await;
    assert_eq!(text(&events), "It still waits.");
    assert!(server.requests()[1].body.to_string().contains("CONFIRMATION_REQUIRED"));
    let turn = fixture.agent.answer(answer(&session, &approval, true)).await.unwrap();
    let events = fixture.events(&session, turn.resumed_at).await;
    assert_eq!(results(&events).len(), 1);
    assert_eq!(fixture.runs().len(), 1);
    // The later turn is not answered a second time.
    assert_eq!(server.requests().len(), 2);
}
