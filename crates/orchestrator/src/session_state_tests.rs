//! The state machine, dense: every intent in every state.

use serde_json::json;

use super::*;
use crate::session::tests::session;

fn voice() -> SessionRecord {
    SessionRecord { mode: Mode::Voice, ..session("s") }
}

fn reasons(session: &mut SessionRecord, intents: &[Value]) -> Vec<String> {
    let refused = apply(session, intents, 10, 100);
    refused.iter().map(|report| report["reason"].as_str().unwrap().to_owned()).collect()
}

fn end(after: &str) -> Value {
    json!({ "type": "END_VOICE_SESSION", "after": after })
}

#[test]
fn intents_are_applied_in_order_and_the_last_one_holds() {
    let mut session = voice();
    let intents = [
        json!({ "type": "SUPPRESS_AUDIO", "value": true }),
        json!({ "type": "SUPPRESS_TRANSCRIPT", "value": true }),
        json!({ "type": "SET_PENDING_MESSAGE", "message": "one" }),
        json!({ "type": "SUPPRESS_AUDIO", "value": false }),
        json!({ "type": "SET_PENDING_MESSAGE", "message": "two" }),
        end("farewell_spoken"),
    ];
    assert_eq!(reasons(&mut session, &intents), [""; 0]);
    assert_eq!(
        session.state,
        json!({ "suppressAudio": false, "suppressTranscript": true, "pendingMessage": "two",
            "pendingEndVoiceSession": { "after": "farewell_spoken", "endBy": 110 } })
    );
    assert_eq!(take_message(&mut session).as_deref(), Some("two"));
    assert_eq!(take_message(&mut session), None);
}

#[test]
fn what_the_state_does_not_allow_is_refused_and_the_rest_stands() {
    let mut text = session("s");
    let intents = [end("current_turn"), json!({ "type": "SUPPRESS_AUDIO", "value": true })];
    assert_eq!(reasons(&mut text, &intents), ["this is not a voice session"]);
    assert_eq!(text.state, json!({ "suppressAudio": true }));

    for status in [SessionStatus::Ended, SessionStatus::Expired] {
        let mut over = SessionRecord { status, ..voice() };
        assert_eq!(reasons(&mut over, &[end("current_turn")]), ["the session is not active"]);
        assert_eq!(over.state, json!({}));
    }
    let nonsense = [
        end("tomorrow"),
        json!({ "type": "END_VOICE_SESSION" }),
        json!({ "type": "SUPPRESS_AUDIO", "value": "yes" }),
        json!({ "type": "SUPPRESS_TRANSCRIPT" }),
        json!({ "type": "SET_PENDING_MESSAGE", "message": "" }),
        json!({ "type": "SELF_DESTRUCT" }),
        json!("END_VOICE_SESSION"),
        json!({}),
    ];
    let mut session = voice();
    assert_eq!(reasons(&mut session, &nonsense).len(), nonsense.len());
    assert_eq!(session.state, json!({}));
}

#[test]
fn a_session_ends_with_the_event_that_its_end_waits_for() {
    for (after, event, ends) in [
        ("current_turn", Event::TurnFinished, true),
        ("current_turn", Event::FarewellSpoken, true),
        ("farewell_spoken", Event::TurnFinished, false),
        ("farewell_spoken", Event::FarewellSpoken, true),
    ] {
        let mut session = voice();
        apply(&mut session, &[end(after)], 10, 100);
        assert_eq!(apply_event(&mut session, event), ends, "{after} {event:?}");
        assert_eq!(session.status == SessionStatus::Ended, ends);
        assert!(!apply_event(&mut session, Event::TurnFinished) || !ends, "it ends once");
    }
    assert!(!apply_event(&mut voice(), Event::FarewellSpoken));
}

#[test]
fn a_farewell_that_is_never_spoken_still_ends_the_session() {
    let mut session = voice();
    apply(&mut session, &[end("farewell_spoken")], 10, 100);
    assert!(is_active(&session, 109));
    assert!(!is_active(&session, 110));
    assert_eq!(reasons(&mut session.clone(), &[]), [""; 0]);
    assert_eq!(apply(&mut session, &[json!({ "type": "SUPPRESS_AUDIO", "value": true })], 110, 100).len(), 1);
}
