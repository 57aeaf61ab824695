//! Gates: each refusal is an envelope with a suggestion, and nothing runs.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_contract::{Mode, Principal, RateLimit};
use toolwright_orchestrator::session::NewSession;

use crate::support::{Fixture, Setup, call, message, retrieval, to_json, until};

async fn refused(fixture: &Fixture, session: &str, tool: &str, args: Value, kind: &str) {
    let before = fixture.done.runs();
    let envelope = fixture.call(session, "", tool, args).await;
    let error = &envelope["error"];
    assert_eq!(error["type"], kind, "{envelope}");
    assert_eq!(error["partialSideEffects"], false);
    assert!(error["suggestion"].as_str().is_some_and(|text| !text.is_empty()), "{envelope}");
    assert_eq!(fixture.done.runs(), before, "it ran");
}

#[tokio::test]
async fn a_tool_that_is_not_available_is_refused_and_so_is_one_whose_condition_fails() {
    let when = |condition: &str| json!({ "availability": { "condition": condition } });
    let fixture = Setup::new()
        .tool("staff_only", when("\"staff\" in user.roles && args.n > 1"))
        .tool("broken", when("args.absent.deeper == 1"))
        .tool("no_bool", when("args.n"))
        .build();
    let (staff, guest) = (
        fixture.session_of("a", Mode::Text, &["staff"]).await,
        fixture.session_of("b", Mode::Text, &[]).await,
    );
    assert_eq!(fixture.outcome(&staff, "", "staff_only", json!({ "n": 2 })).await, "ok");
    refused(&fixture, &staff, "staff_only", json!({ "n": 1 }), "UNAVAILABLE").await;
    refused(&fixture, &guest, "staff_only", json!({ "n": 2 }), "UNAVAILABLE").await;
    refused(&fixture, &staff, "broken", json!({}), "UNAVAILABLE").await;
    refused(&fixture, &staff, "no_bool", json!({ "n": 1 }), "UNAVAILABLE").await;
}

#[tokio::test]
async fn a_required_role_must_be_present() {
    let fixture =
        Setup::new().tool("act", json!({ "permissions": { "roles": ["admin", "editor"] } })).build();
    let editor = fixture.session_of("a", Mode::Text, &["editor", "x"]).await;
    assert_eq!(fixture.outcome(&editor, "", "act", json!({})).await, "ok");
    refused(&fixture, &fixture.session_of("b", Mode::Text, &["x"]).await, "act", json!({}), "AUTH").await;
}

#[tokio::test]
async fn a_tool_that_requires_authentication_refuses_who_has_not_proven_who_they_are() {
    let fixture = Setup::new().tool("act", json!({ "permissions": { "requiresAuth": true } })).build();
    let user = fixture.session_of("mira", Mode::Text, &[]).await;
    assert_eq!(fixture.outcome(&user, "", "act", json!({})).await, "ok");
    let anyone = fixture.session_of("local", Mode::Text, &["admin"]).await;
    refused(&fixture, &anyone, "act", json!({}), "AUTH").await;
}

#[tokio::test]
async fn a_tool_is_refused_in_a_mode_that_it_does_not_allow() {
    let fixture = Setup::new().tool("act", json!({ "allowedModes": ["text"] })).build();
    refused(&fixture, &fixture.session(Mode::Voice).await, "act", json!({}), "MODE_RESTRICTED").await;
}

#[tokio::test]
async fn calls_are_limited_per_tool_and_client_and_per_org() {
    let fixture = Setup::new()
        .tool("act", json!({ "permissions": { "rateLimit": { "calls": 2, "window": 1000 } } }))
        .tool("free", json!({}))
        .policy(|policy| policy.org_rate = Some(RateLimit { calls: 5, window: 60_000 }))
        .build();
    let (one, two) =
        (fixture.session_of("a", Mode::Text, &[]).await, fixture.session_of("b", Mode::Text, &[]).await);
    for n in 0..2 {
        assert_eq!(fixture.outcome(&one, "", "act", json!({ "n": n })).await, "ok");
    }
    refused(&fixture, &one, "act", json!({ "n": 3 }), "RATE_LIMIT").await;
    assert_eq!(fixture.outcome(&two, "", "act", json!({})).await, "ok");
    fixture.clock.advance(1000);
    assert_eq!(fixture.outcome(&one, "", "act", json!({ "n": 4 })).await, "ok");
    // The org has used four of its five calls.
    assert_eq!(fixture.outcome(&two, "", "free", json!({ "n": 1 })).await, "ok");
    refused(&fixture, &two, "free", json!({ "n": 2 }), "RATE_LIMIT").await;
    // A replay costs nothing.
    assert_eq!(fixture.outcome(&two, "", "free", json!({ "n": 1 })).await, "ok");
}

fn with_top_k() -> Value {
    let mut fields = retrieval();
    fields["jsonSchema"] = json!({ "type": "object", "additionalProperties": false, "properties": {
        "top_k": { "type": "integer", "minimum": 1, "maximum": 50, "default": 20 },
        "depth": { "type": "integer" }, "n": {} } });
    fields["clamp"] = json!({ "voice": { "depth": 1, "top_k": 2 } });
    fields
}

#[tokio::test]
async fn numbers_are_clamped_by_policy_and_by_the_tool_and_meta_reports_it() {
    let fixture = Setup::new().tool("find", with_top_k()).build();
    let (text, voice) = (fixture.session(Mode::Text).await, fixture.session(Mode::Voice).await);
    let envelope = fixture.call(&text, "", "find", json!({ "depth": 9 })).await;
    assert_eq!(envelope["meta"]["clamped"], json!({ "top_k": { "from": 20, "to": 10 } }));
    let envelope = fixture.call(&voice, "", "find", json!({ "top_k": 30, "depth": 9 })).await;
    assert_eq!(
        envelope["meta"]["clamped"],
        json!({ "depth": { "from": 9, "to": 1 }, "top_k": { "from": 30, "to": 2 } })
    );
    let envelope = fixture.call(&voice, "", "find", json!({ "top_k": 1, "depth": 1 })).await;
    assert_eq!(envelope["meta"].get("clamped"), None);
    assert_eq!(
        fixture.done.args(),
        [
            json!({ "depth": 9, "top_k": 10 }),
            json!({ "top_k": 2, "depth": 1 }),
            json!({ "top_k": 1, "depth": 1 })
        ]
    );
}

#[tokio::test]
async fn clamped_arguments_are_validated_again() {
    let mut fields = json!({ "clamp": { "text": { "even": 3 } } });
    fields["jsonSchema"] =
        json!({ "type": "object", "properties": { "even": { "type": "integer", "multipleOf": 2 } } });
    let fixture = Setup::new().tool("act", fields).build();
    refused(&fixture, &fixture.session(Mode::Text).await, "act", json!({ "even": 8 }), "VALIDATION").await;
}

#[tokio::test]
async fn all_messages_of_a_turn_share_its_budget() {
    for (mode, limit) in [(Mode::Voice, 2), (Mode::Text, 5)] {
        let fixture = Setup::new().tool("find", retrieval()).tool("act", json!({})).build();
        let session = fixture.session(mode).await;
        for turn in 0..2 {
            for n in 0..limit {
                assert_eq!(fixture.outcome(&session, &format!("{turn}-{n}"), "find", json!({})).await, "ok");
            }
            refused(&fixture, &session, "find", json!({ "n": "more" }), "BUDGET_EXCEEDED").await;
            // Replays, actions and descriptions cost nothing.
            assert_eq!(fixture.outcome(&session, &format!("{turn}-0"), "find", json!({})).await, "ok");
            assert_eq!(fixture.outcome(&session, &format!("{turn}-a"), "act", json!({})).await, "ok");
            assert_eq!(fixture.outcome(&session, "", "reg_describe", json!({ "tool": "find" })).await, "ok");
            fixture.orchestrator.begin_turn(&session).await.unwrap();
        }
    }
}

#[tokio::test]
async fn parallel_calls_cannot_overspend_the_budget() {
    let fixture = Setup::new().tool("find", retrieval()).build();
    let session = fixture.session(Mode::Text).await;
    let calls = (0..20).map(|n| call(&format!("c{n}"), "find", json!({}))).collect();
    let answers = message(&fixture.orchestrator, &session, calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
    assert_eq!(fixture.done.runs(), 5);
    assert!(
        answers.iter().all(|answer| answer.is_ok() || to_json(answer)["error"]["type"] == "BUDGET_EXCEEDED")
    );
}

#[tokio::test]
async fn the_first_gate_that_refuses_is_reported() {
    let fields = json!({ "availability": { "condition": "false" }, "permissions": { "roles": ["admin"] },
        "allowedModes": ["voice"], "jsonSchema": { "type": "object", "required": ["x"] } });
    let fixture = Setup::new().tool("act", fields.clone()).build();
    refused(&fixture, &fixture.session(Mode::Text).await, "act", json!({}), "UNAVAILABLE").await;
    let mut fields = fields;
    fields["availability"] = json!({ "condition": "true" });
    let fixture = Setup::new().tool("act", fields).build();
    refused(&fixture, &fixture.session(Mode::Text).await, "act", json!({}), "AUTH").await;
    refused(
        &fixture,
        &fixture.session_of("a", Mode::Text, &["admin"]).await,
        "act",
        json!({}),
        "MODE_RESTRICTED",
    )
    .await;
    refused(
        &fixture,
        &fixture.session_of("a", Mode::Voice, &["admin"]).await,
        "act",
        json!({}),
        "VALIDATION",
    )
    .await;
}

#[tokio::test]
async fn a_tool_that_a_handler_calls_passes_the_same_gates() {
    let fixture = Setup::new()
        .tool("outer", json!({}))
        .tool("voice_only", json!({ "allowedModes": ["voice"] }))
        .tool("careful", json!({ "requiresConfirmation": true }))
        .tool("find", retrieval())
        .build();
    let session = fixture.session(Mode::Text).await;
    for (tool, kind) in
        [("voice_only", "MODE_RESTRICTED"), ("careful", "CONFIRMATION_REQUIRED"), ("unknown", "NOT_FOUND")]
    {
        let outer = fixture.call(&session, "", "outer", json!({ "call": tool, "with": {} })).await;
        assert_eq!(outer["data"]["error"]["type"], kind, "{outer}");
    }
    for n in 0..6 {
        let outer = fixture.call(&session, "", "outer", json!({ "call": "find", "with": { "n": n } })).await;
        assert_eq!(outer["data"]["ok"], n < 5, "{outer}");
    }
}

#[tokio::test]
async fn a_call_that_another_gate_refuses_takes_no_rate_token() {
    let fields = json!({ "permissions": { "rateLimit": { "calls": 1, "window": 1000 } },
        "jsonSchema": { "type": "object", "required": ["x"] } });
    let fixture = Setup::new()
        .tool("act", fields.clone())
        .tool("free", json!({}))
        .policy(|policy| policy.org_rate = Some(RateLimit { calls: 1, window: 60_000 }))
        .build();
    let session = fixture.session(Mode::Text).await;
    for n in 0..3 {
        refused(&fixture, &session, "act", json!({ "n": n }), "VALIDATION").await;
    }
    assert_eq!(fixture.outcome(&session, "", "free", json!({})).await, "ok");
    // The org's limit refuses: the tool's own token is returned.
    refused(&fixture, &session, "act", json!({ "x": 1 }), "RATE_LIMIT").await;
    fixture.clock.advance(60_000);
    assert_eq!(fixture.outcome(&session, "", "act", json!({ "x": 2 })).await, "ok");
    fixture.clock.advance(999);
    refused(&fixture, &session, "act", json!({ "x": 3 }), "RATE_LIMIT").await;
}

#[tokio::test]
async fn a_clamped_secret_is_redacted() {
    let schema = json!({ "type": "object", "properties": {
        "pin": { "type": "integer", "writeOnly": true }, "depth": { "type": "integer" } } });
    let fixture = Setup::new()
        .tool("act", json!({ "jsonSchema": schema, "clamp": { "text": { "pin": 4321, "depth": 1 } } }))
        .build();
    let session = fixture.session(Mode::Text).await;
    let envelope = fixture.call(&session, "c1", "act", json!({ "pin": 987_654, "depth": 5 })).await;
    assert_eq!(envelope["meta"]["clamped"], json!({ "pin": "[redacted]", "depth": { "from": 5, "to": 1 } }));
}

#[tokio::test]
async fn a_call_that_waited_is_checked_against_the_current_session() {
    let fixture = Arc::new(Setup::new().tool("find", retrieval()).build());
    let session = fixture.session(Mode::Text).await;
    let run = || {
        let (fixture, session) = (Arc::clone(&fixture), session.clone());
        tokio::spawn(async move { fixture.outcome(&session, "c1", "find", json!({ "wait": true })).await })
    };
    let first = run();
    until(|| fixture.done.runs() == 1).await;
    let second = run();
    tokio::task::yield_now().await;
    fixture.orchestrator.end_session(&session).await.unwrap();
    first.abort();
    assert_eq!(second.await.unwrap(), "SESSION_INACTIVE");
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn a_rule_may_use_the_operators_settings() {
    let rule =
        json!({ "when": "mentions(args.text, settings.images.sensitive_words)", "preview": "{{text}}?" });
    let setup = || Setup::new().tool("paint", json!({ "requiresConfirmation": rule }));
    let fixture = setup()
        .policy(|policy| policy.settings = json!({ "images": { "sensitive_words": ["gun*"] } }))
        .build();
    let session = fixture.session(Mode::Text).await;
    assert_eq!(fixture.outcome(&session, "c1", "paint", json!({ "text": "a lake" })).await, "ok");
    let asked = fixture.outcome(&session, "c2", "paint", json!({ "text": "Guns on a lake" })).await;
    assert_eq!(asked, "CONFIRMATION_REQUIRED");
    // A rule that cannot be evaluated requires approval.
    let fixture = setup().build();
    let session = fixture.session(Mode::Text).await;
    assert_eq!(
        fixture.outcome(&session, "c1", "paint", json!({ "text": "a lake" })).await,
        "CONFIRMATION_REQUIRED"
    );
}

#[tokio::test]
async fn another_client_id_does_not_escape_a_rate_limit() {
    let fixture = Setup::new()
        .tool("act", json!({ "permissions": { "rateLimit": { "calls": 2, "window": 1000 } } }))
        .build();
    let session_of = async |client: &str, roles: &[&str]| {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let principal = Principal { id: "mira".to_owned(), org: None, roles };
        let new = NewSession { principal, ..NewSession::new(client, Mode::Text) };
        fixture.orchestrator.create_session(new).await.unwrap().id.clone()
    };
    for (number, client) in ["phone", "desk"].into_iter().enumerate() {
        let session = session_of(client, &[]).await;
        assert_eq!(fixture.outcome(&session, "", "act", json!({ "n": number })).await, "ok");
    }
    fixture.clock.advance(400);
    let session = session_of("third", &[]).await;
    refused(&fixture, &session, "act", json!({}), "RATE_LIMIT").await;
    let refusal = fixture.call(&session, "", "act", json!({})).await;
    assert_eq!(refusal["error"]["details"], json!({ "retryAfterMs": 600 }));
    // A service that speaks for its clients has a limit for each of them.
    for client in ["a", "b"] {
        let session = session_of(client, &["speaks-for-clients"]).await;
        for number in 0..2 {
            assert_eq!(fixture.outcome(&session, "", "act", json!({ "n": number })).await, "ok", "{client}");
        }
        refused(&fixture, &session, "act", json!({ "n": 2 }), "RATE_LIMIT").await;
    }
}
