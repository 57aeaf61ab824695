//! Whatever a handler returns, throws or runs into becomes an outcome that fits the envelope. The only place for it.
//!
//! The message is for the model and leaks nothing; the detail is for the operator's log.

use serde_json::{Map, Value};
use toolwright_contract::{ErrorKind, Failure, SideEffects, Success};
use toolwright_engine as engine;

/// An outcome, and what the log should say about it.
#[derive(Debug, PartialEq)]
pub struct Normalised {
    pub outcome: Result<Success, Failure>,
    pub detail: Option<String>,
}

/// Judges what came of running a handler.
pub fn normalise(result: Result<Value, engine::Failure>, effects: SideEffects) -> Normalised {
    match result {
        Ok(value) => judge(value),
        Err(failure) => failed(failure, effects == SideEffects::Writes),
    }
}

fn judge(value: Value) -> Normalised {
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

/// A failure that the handler foresaw: its fields are kept, as far as they are what they should be.
fn declared(error: &Map<String, Value>) -> Normalised {
    let kind = error.get("type").and_then(Value::as_str).and_then(of_a_handler);
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
        suggestion: error.get("suggestion").and_then(Value::as_str).map(str::to_owned),
    };
    Normalised { outcome: Err(failure), detail: None }
}

/// The kinds that speak of policy are the orchestrator's: a handler cannot pretend that a person was asked.
fn of_a_handler(word: &str) -> Option<ErrorKind> {
    use ErrorKind::{BudgetExceeded, ConfirmationRequired, ModeRestricted, Unavailable};
    let kind = ErrorKind::from_word(word)?;
    (!matches!(kind, BudgetExceeded | ConfirmationRequired | ModeRestricted | Unavailable)).then_some(kind)
}

fn malformed(detail: &str) -> Normalised {
    let failure = Failure::unforeseen("The tool gave an answer that cannot be used.")
        .suggest("Do not call it again with the same arguments; tell the user that it is out of order.");
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
            let busy = Failure::new(ErrorKind::Transient, "Too many tools are running now.");
            Failure { retryable: true, ..busy }.suggest("Try again in a moment.")
        }
        Engine::CpuTime => broken("The tool used up its processor time."),
        Engine::Memory => broken("The tool used up its memory."),
        Engine::Stack => broken("The tool recursed too deeply."),
        Engine::OutputTooLarge => broken("The tool's answer is too large."),
        Engine::TooManyHostCalls => broken("The tool made too many requests."),
        Engine::NeverSettles => broken("The tool never finishes."),
        Engine::BadResult(_) => return malformed(&detail),
        Engine::Load(_) => Failure::new(ErrorKind::Internal, "The tool cannot be loaded."),
    };
    Normalised { outcome: Err(outcome), detail: Some(detail) }
}

/// A thrown `ToolError` keeps its fields.
fn thrown(fields: engine::ToolErrorFields, detail: String) -> Normalised {
    let Some(kind) = of_a_handler(&fields.type_) else {
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
        suggestion: None,
    };
    Normalised { outcome: Err(failure), detail: None }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
