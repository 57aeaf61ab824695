//! Turns what a handler returns or throws, and every engine failure, into an outcome for the envelope. The only place for
//! it.
//!
//! The message is for the model and leaks nothing; the detail is for the operator's log.

use serde_json::{Map, Value};
use toolwright_contract::{ErrorKind, Failure, SideEffects, Success};
use toolwright_engine as engine;

/// An outcome, and the detail for the log.
#[derive(Debug, PartialEq)]
pub struct Normalised {
    pub outcome: Result<Success, Failure>,
    pub detail: Option<String>,
}

/// Normalises the result of a handler.
pub fn normalise(result: Result<Value, engine::Failure>, effects: SideEffects) -> Normalised {
    match result {
        Ok(value) => returned(value),
        Err(failure) => failed(failure, effects == SideEffects::Writes),
    }
}

fn returned(value: Value) -> Normalised {
    let Value::Object(mut members) = value else {
        return malformed("the handler did not return an envelope");
    };
    match members.get("ok") {
        Some(Value::Bool(true)) => success(&mut members),
        Some(Value::Bool(false)) => match members.get("error") {
            Some(Value::Object(error)) => declared(error),
            _ => malformed("the handler returned `ok: false` without an `error`"),
        },
        _ => malformed("the handler's result has no boolean `ok`"),
    }
}

fn success(members: &mut Map<String, Value>) -> Normalised {
    let intents = match members.remove("intents") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(intents)) => intents,
        Some(_) => return malformed("`intents` is not a list"),
    };
    if !intents.iter().all(|intent| intent.get("type").is_some_and(Value::is_string)) {
        return malformed("an intent has no `type`");
    }
    let data = members.remove("data").unwrap_or(Value::Null);
    Normalised { outcome: Ok(Success { data: data.into(), intents }), detail: None }
}

/// A failure that the handler returned. Fields of the wrong type are ignored.
fn declared(error: &Map<String, Value>) -> Normalised {
    let kind = error.get("type").and_then(Value::as_str).and_then(handler_error_kind);
    let (Some(kind), Some(message)) = (kind, error.get("message").and_then(Value::as_str)) else {
        return malformed("the handler's error has no known `type` or no `message`");
    };
    let flag = |name: &str| error.get(name).and_then(Value::as_bool);
    let failure = Failure {
        kind,
        message: message.to_owned(),
        retryable: flag("retryable").unwrap_or(false),
        partial_side_effects: flag("partialSideEffects").unwrap_or(false),
        idempotency_required: flag("idempotencyRequired"),
        details: error.get("details").cloned().map(Box::new),
        confirmation: None,
        suggestion: error.get("suggestion").and_then(Value::as_str).map(str::to_owned),
    };
    Normalised { outcome: Err(failure), detail: None }
}

/// Error types of policy are reserved: a handler cannot claim that a person was asked.
fn handler_error_kind(word: &str) -> Option<ErrorKind> {
    use ErrorKind::{BudgetExceeded, ConfirmationRequired, ModeRestricted, Unavailable};
    let kind = ErrorKind::from_word(word)?;
    (!matches!(kind, BudgetExceeded | ConfirmationRequired | ModeRestricted | Unavailable)).then_some(kind)
}

fn malformed(detail: &str) -> Normalised {
    let failure = Failure::unforeseen("The tool returned an invalid result.")
        .suggest("Do not call it again with the same arguments; tell the user that it does not work.");
    Normalised { outcome: Err(failure), detail: Some(detail.to_owned()) }
}

fn failed(failure: engine::Failure, writes: bool) -> Normalised {
    use engine::Failure as Engine;
    let detail = match &failure {
        Engine::Thrown { stack, .. } if !stack.is_empty() => format!("{failure}\n{}", stack.trim_end()),
        _ => failure.to_string(),
    };
    let stopped =
        |kind, message: &str| Failure { partial_side_effects: writes, ..Failure::new(kind, message) };
    let broken = |message: &str| {
        stopped(ErrorKind::Internal, message).suggest("Do not call it again with the same arguments.")
    };
    let outcome = match failure {
        Engine::Thrown { tool_error: Some(fields), .. } => return thrown(*fields, detail),
        Engine::Thrown { .. } | Engine::EngineLost => Failure::unforeseen("The tool failed unexpectedly."),
        Engine::Deadline => {
            let late = stopped(ErrorKind::Transient, "The tool did not finish in time.");
            Failure { retryable: !writes, ..late }
        }
        Engine::Cancelled => stopped(ErrorKind::Transient, "The call was cancelled."),
        Engine::Overloaded => {
            let busy = Failure::new(ErrorKind::Transient, "Too many tools are running.");
            Failure { retryable: true, ..busy }.suggest("Try again in a moment.")
        }
        Engine::NoWorker(_) => Failure::new(ErrorKind::Unavailable, "The tool cannot run on this server.")
            .suggest("Continue without it, and tell the user that it cannot be used."),
        Engine::CpuTime => broken("The tool exceeded its CPU time limit."),
        Engine::Memory => broken("The tool exceeded its memory limit."),
        Engine::Stack => broken("The tool exceeded its stack limit."),
        Engine::OutputTooLarge => broken("The tool's output is too large."),
        Engine::TooManyHostCalls => broken("The tool made too many capability calls."),
        Engine::NeverSettles => broken("The tool awaits a promise that never settles."),
        Engine::BadResult(_) => return malformed(&detail),
        Engine::Load(_) => Failure::new(ErrorKind::Internal, "The tool cannot be loaded."),
    };
    Normalised { outcome: Err(outcome), detail: Some(detail) }
}

/// A thrown `ToolError`.
fn thrown(fields: engine::ToolErrorFields, detail: String) -> Normalised {
    let Some(kind) = handler_error_kind(&fields.type_) else {
        return Normalised {
            outcome: Err(Failure::unforeseen("The tool failed unexpectedly.")),
            detail: Some(detail),
        };
    };
    let failure = Failure {
        kind,
        message: fields.message,
        retryable: fields.retryable,
        partial_side_effects: fields.partial_side_effects,
        idempotency_required: fields.idempotency_required.then_some(true),
        details: fields.details.map(Box::new),
        confirmation: None,
        suggestion: None,
    };
    Normalised { outcome: Err(failure), detail: None }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
