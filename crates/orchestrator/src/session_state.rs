//! The session's state machine: applies the intents of a call in order, and refuses what the state does not allow.
//! Nothing else changes a session's state.
//!
//! ```text
//! active ──END_VOICE_SESSION{after}──► ending ──turn finished │ farewell spoken │ watchdog──► ended
//! ```
//! Suppression lasts until it is set again, the pending message until it is delivered.

use serde_json::{Value, json};
use toolwright_contract::{IntentKind, Mode};

use crate::store::{PENDING_END, SessionRecord, SessionStatus};

const AUDIO: &str = "suppressAudio";
const TRANSCRIPT: &str = "suppressTranscript";
const MESSAGE: &str = "pendingMessage";

/// An event of the conversation, which the transport reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The model has given its final answer of the turn.
    TurnFinished,
    /// The farewell has been spoken.
    FarewellSpoken,
}

/// Whether the session is active now: an expired session is not, even if no sweep has closed it yet.
pub(crate) fn is_active(session: &SessionRecord, now: i64) -> bool {
    session.status_at(now) == SessionStatus::Active
}

/// Applies intents in order. Returns the type and the reason of each refused one.
pub(crate) fn apply(
    session: &mut SessionRecord,
    intents: &[Value],
    now: i64,
    farewell_ms: i64,
) -> Vec<Value> {
    let mut refused = Vec::new();
    for intent in intents {
        if let Err(reason) = apply_one(session, intent, now, farewell_ms) {
            let kind = intent.get("type").cloned().unwrap_or(Value::Null);
            tracing::warn!(session = session.id, intent = %kind, "refused an intent: {reason}");
            refused.push(json!({ "type": kind, "reason": reason }));
        }
    }
    refused
}

fn apply_one(
    session: &mut SessionRecord,
    intent: &Value,
    now: i64,
    farewell_ms: i64,
) -> Result<(), &'static str> {
    let word = intent.get("type").and_then(Value::as_str).unwrap_or_default();
    let kind = IntentKind::from_word(word).ok_or("unknown intent")?;
    if !is_active(session, now) {
        return Err("the session is not active");
    }
    let switch = || intent.get("value").and_then(Value::as_bool).ok_or("`value` must be true or false");
    let (name, value) = match kind {
        IntentKind::EndVoiceSession => {
            if session.mode != Mode::Voice {
                return Err("this is not a voice session");
            }
            let after = intent.get("after").and_then(Value::as_str);
            let after = after.filter(|after| ["current_turn", "farewell_spoken"].contains(after));
            let after = after.ok_or("`after` must be current_turn or farewell_spoken")?;
            let waiting = session.state.get(PENDING_END);
            let end_by = waiting.and_then(|ending| ending.get("endBy")).and_then(Value::as_i64);
            // A second intent does not postpone the end.
            let end_by = end_by.unwrap_or(i64::MAX).min(now.saturating_add(farewell_ms));
            let at_once = waiting.is_some_and(|ending| ending["after"] == "current_turn");
            // The session ends by then even if no farewell is reported.
            session.expires_at = session.expires_at.min(end_by);
            (PENDING_END, json!({ "after": if at_once { "current_turn" } else { after }, "endBy": end_by }))
        }
        IntentKind::SuppressAudio => (AUDIO, switch()?.into()),
        IntentKind::SuppressTranscript => (TRANSCRIPT, switch()?.into()),
        IntentKind::SetPendingMessage => {
            let message = intent.get("message").and_then(Value::as_str).filter(|message| !message.is_empty());
            (MESSAGE, message.ok_or("`message` must be a string that is not empty")?.into())
        }
    };
    set(session, name, value);
    Ok(())
}

/// Applies an event. True when it ends the session.
pub(crate) fn apply_event(session: &mut SessionRecord, event: Event) -> bool {
    let after = session.state.get(PENDING_END).and_then(|ending| ending.get("after")).and_then(Value::as_str);
    let ends = match after {
        Some("current_turn") => true,
        Some(_) => event == Event::FarewellSpoken,
        None => false,
    };
    let ends = ends && session.status == SessionStatus::Active;
    if ends {
        session.status = SessionStatus::Ended;
    }
    ends
}

/// Removes and returns the pending message.
pub(crate) fn take_message(session: &mut SessionRecord) -> Option<String> {
    match session.state.as_object_mut()?.remove(MESSAGE)? {
        Value::String(message) => Some(message),
        _ => None,
    }
}

fn set(session: &mut SessionRecord, name: &str, value: Value) {
    match &mut session.state {
        Value::Object(members) => {
            members.insert(name.to_owned(), value);
        }
        other => *other = json!({ name: value }),
    }
}

#[cfg(test)]
#[path = "session_state_tests.rs"]
mod tests;
