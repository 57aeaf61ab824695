//! What a model is told: an envelope made into an answer that it can act on, by error type and mode.

use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, ErrorKind, Mode};

use crate::confirm;

/// The answer for the model. `documentation` is the tool's, for a call that it got wrong.
pub(crate) fn answer(envelope: &Envelope, mode: Mode, documentation: Option<&str>) -> Value {
    let failure = match &envelope.outcome {
        Ok(success) => return json!({ "ok": true, "data": &*success.data }),
        Err(failure) => failure,
    };
    // In voice there is no time for a second try.
    let retryable = failure.retryable && mode == Mode::Text;
    let mut told = Map::new();
    told.insert("ok".to_owned(), false.into());
    let message = match failure.kind {
        ErrorKind::Transient if failure.retryable => "Temporary failure, please try again later.".to_owned(),
        _ => failure.message.clone(),
    };
    told.insert("error".to_owned(), message.into());
    told.insert("type".to_owned(), failure.kind.as_str().into());
    told.insert("retryable".to_owned(), retryable.into());
    if failure.partial_side_effects {
        told.insert("partialSideEffects".to_owned(), true.into());
    }
    let suggestion =
        failure.suggestion.as_deref().or_else(|| advice(failure.kind, failure.partial_side_effects, mode));
    if let Some(suggestion) = suggestion {
        told.insert("suggestion".to_owned(), suggestion.into());
    }
    if let Some(details) = &failure.details {
        let mut details = (**details).clone();
        confirm::without_token(&mut details);
        told.insert("details".to_owned(), details);
    }
    if failure.kind == ErrorKind::Validation
        && let Some(documentation) = documentation
    {
        told.insert("documentation".to_owned(), documentation.into());
    }
    Value::Object(told)
}

/// What to do when nobody has said so.
fn advice(kind: ErrorKind, partial_side_effects: bool, mode: Mode) -> Option<&'static str> {
    Some(match (kind, mode) {
        _ if partial_side_effects => {
            "It may have been done in part: check, or ask the user, before anything is repeated."
        }
        (ErrorKind::Validation, _) => "Check the parameters and call the tool again.",
        (ErrorKind::Transient, Mode::Voice) => "Say briefly that it did not work, and go on.",
        (ErrorKind::Transient, Mode::Text) => "Try again once, or tell the user that it does not work now.",
        (ErrorKind::RateLimit, _) => "Wait before calling it again.",
        (ErrorKind::SessionInactive, _) => "The session is over: do not call tools any more.",
        (ErrorKind::NotFound, _) => "Check the name or id.",
        (ErrorKind::Conflict, _) => "Look at the current state before trying anything else.",
        (ErrorKind::Auth, _) => "Tell the user that the permission is missing.",
        (ErrorKind::Permanent | ErrorKind::Internal, _) => {
            "Do not call it again with the same arguments; tell the user."
        }
        _ => return None,
    })
}
