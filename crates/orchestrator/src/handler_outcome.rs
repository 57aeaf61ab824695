//! Turns what a handler returns or throws, and every engine failure, into an outcome for the envelope. The only place
//! for it.
//!
//! The message is for the model and leaks nothing; the detail is for the operator's log.

use serde_json::{Map, Value};
use toolwright_contract::{ErrorKind, Failure, SideEffects, Success};
use toolwright_engine as engine;
use toolwright_schema::{ValidationError, Validator};

/// Further problems of an output are counted, not listed.
const MAX_OUTPUT_PROBLEMS: usize = 5;
const MAX_SHOWN_VALUE_BYTES: usize = 100;

/// An outcome, and the detail for the log.
#[derive(Debug, PartialEq)]
pub struct HandlerOutcome {
    pub outcome: Result<Success, Failure>,
    pub detail: Option<String>,
}

/// Normalises the result of a handler that had these limits.
pub fn normalise(
    result: Result<Value, engine::Failure>,
    effects: SideEffects,
    limits: &engine::Limits,
) -> HandlerOutcome {
    match result {
        Ok(value) => returned(value, effects == SideEffects::Writes),
        Err(failure) => failed(failure, effects == SideEffects::Writes, limits),
    }
}

fn returned(value: Value, writes: bool) -> HandlerOutcome {
    let malformed = |detail: &str| malformed(detail, writes);
    let Value::Object(mut members) = value else {
        return malformed("the handler did not return an envelope");
    };
    match members.get("ok") {
        Some(Value::Bool(true)) => success(&mut members, writes),
        Some(Value::Bool(false)) => match members.get("error") {
            Some(Value::Object(error)) => declared(error, writes),
            _ => malformed("the handler returned `ok: false` without an `error`"),
        },
        _ => malformed("the handler's result has no boolean `ok`"),
    }
}

fn success(members: &mut Map<String, Value>, writes: bool) -> HandlerOutcome {
    let malformed = |detail: &str| malformed(detail, writes);
    let intents = match members.remove("intents") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(intents)) => intents,
        Some(_) => return malformed("`intents` is not a list"),
    };
    if !intents.iter().all(|intent| intent.get("type").is_some_and(Value::is_string)) {
        return malformed("an intent has no `type`");
    }
    let data = members.remove("data").unwrap_or(Value::Null);
    HandlerOutcome { outcome: Ok(Success { data: data.into(), intents }), detail: None }
}

/// A failure that the handler returned. Fields of the wrong type are ignored.
fn declared(error: &Map<String, Value>, writes: bool) -> HandlerOutcome {
    let kind = error.get("type").and_then(Value::as_str).and_then(handler_error_kind);
    let (Some(kind), Some(message)) = (kind, error.get("message").and_then(Value::as_str)) else {
        return malformed("the handler's error has no known `type` or no `message`", writes);
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
    HandlerOutcome { outcome: Err(failure), detail: None }
}

/// Error types of policy are reserved: a handler cannot claim that a person was asked.
fn handler_error_kind(word: &str) -> Option<ErrorKind> {
    use ErrorKind::{BudgetExceeded, ConfirmationRequired, ModeRestricted, Unavailable};
    let kind = ErrorKind::from_word(word)?;
    (!matches!(kind, BudgetExceeded | ConfirmationRequired | ModeRestricted | Unavailable)).then_some(kind)
}

fn malformed(detail: &str, writes: bool) -> HandlerOutcome {
    let failure = unexpected("The tool returned an invalid result.", writes)
        .suggest("Do not call it again with the same arguments; tell the user that it does not work.");
    HandlerOutcome { outcome: Err(failure), detail: Some(detail.to_owned()) }
}

/// An unexpected failure of a handler that ran. It may have had side effects if the tool writes.
fn unexpected(message: &str, writes: bool) -> Failure {
    Failure { partial_side_effects: writes, ..Failure::new(ErrorKind::Internal, message) }
}

fn failed(failure: engine::Failure, writes: bool, limits: &engine::Limits) -> HandlerOutcome {
    use engine::Failure as Engine;
    let exceeded = exceeded_limit(&failure, limits);
    let mut detail = detail(&failure);
    if let Some((limit, setting)) = &exceeded {
        let setting = setting.map(|setting| format!(" (`[handlers] {setting}`)")).unwrap_or_default();
        detail = format!("the handler exceeded {limit}{setting}");
    }
    let stopped =
        |kind, message: &str| Failure { partial_side_effects: writes, ..Failure::new(kind, message) };
    let broken = |message: &str| {
        stopped(ErrorKind::Internal, message).suggest("Do not call it again with the same arguments.")
    };
    let outcome = match failure {
        Engine::Thrown { tool_error: Some(fields), .. } => return thrown(*fields, detail, writes),
        Engine::Thrown { .. } | Engine::EngineLost => unexpected("The tool failed unexpectedly.", writes),
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
        Engine::CpuTime
        | Engine::Memory
        | Engine::Stack
        | Engine::OutputTooLarge
        | Engine::TooManyHostCalls => {
            let (limit, _) = exceeded.unwrap_or_default();
            broken(&format!("The tool exceeded {limit}."))
        }
        Engine::NeverSettles => broken("The tool awaits a promise that never settles."),
        Engine::BadResult(_) => return malformed(&detail, writes),
        Engine::Load(_) => Failure::new(ErrorKind::Internal, "The tool cannot be loaded."),
    };
    HandlerOutcome { outcome: Err(outcome), detail: Some(detail) }
}

/// The limit that a handler has exceeded, and its setting in `[handlers]`.
fn exceeded_limit(
    failure: &engine::Failure,
    limits: &engine::Limits,
) -> Option<(String, Option<&'static str>)> {
    let engine::Limits { memory_bytes, cpu, stack_bytes, output_bytes, total_bytes, .. } = limits;
    let engine::Limits { pending_host_calls, total_host_calls, .. } = limits;
    Some(match failure {
        engine::Failure::CpuTime => {
            (format!("its limit of {} ms of CPU time", cpu.as_millis()), Some("cpu_ms"))
        }
        engine::Failure::Memory => {
            (format!("its limit of {} MB of memory", memory_bytes >> 20), Some("memory_mb"))
        }
        engine::Failure::Stack => (format!("its limit of {} KB of stack", stack_bytes >> 10), None),
        engine::Failure::OutputTooLarge => {
            let (one, all) = (output_bytes >> 10, total_bytes >> 10);
            let limit =
                format!("its limit of {one} KB for a result or a capability call, or {all} KB for all");
            (limit, Some("output_kb"))
        }
        engine::Failure::TooManyHostCalls => {
            let limit = format!(
                "its limit of {pending_host_calls} capability calls at a time, or {total_host_calls} in all"
            );
            (limit, Some("pending_calls"))
        }
        _ => return None,
    })
}

/// The failure with its code, and the frames of its stack.
fn detail(failure: &engine::Failure) -> String {
    let engine::Failure::Thrown { code, name, message, stack, .. } = failure else {
        return failure.to_string();
    };
    let code = code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
    format!("the handler threw {name}{code}: {message}\n{stack}").trim_end().to_owned()
}

/// Where and how a handler's data does not match the `output` schema, such as `/order_id must be string, got 12`.
pub(crate) fn output_problems(output: &Validator, data: &Value) -> String {
    let mut filled = data.clone();
    let errors = output.validate(&mut filled).err().unwrap_or_default();
    let mut problems: Vec<String> =
        errors.iter().take(MAX_OUTPUT_PROBLEMS).map(|error| output_problem(error, data)).collect();
    if errors.len() > MAX_OUTPUT_PROBLEMS {
        problems.push(format!("and {} more", errors.len() - MAX_OUTPUT_PROBLEMS));
    }
    problems.join("; ")
}

fn output_problem(error: &ValidationError, data: &Value) -> String {
    let place = if error.instance_path.is_empty() { "the data" } else { error.instance_path.as_str() };
    if let Some(name) = error.params.get("additionalProperty").and_then(Value::as_str) {
        return format!("{place} must not have `{name}`");
    }
    let mut text = format!("{place} {}", error.message);
    if let Some(allowed) = error.params.get("allowedValues") {
        text.push_str(&format!(": {allowed}"));
    }
    match data.pointer(&error.instance_path) {
        Some(Value::Array(_)) if error.keyword == "type" => text.push_str(", got an array"),
        Some(Value::Object(_)) if error.keyword == "type" => text.push_str(", got an object"),
        None | Some(Value::Array(_) | Value::Object(_)) => {}
        Some(found) => {
            let mut found = found.to_string();
            found.truncate(found.floor_char_boundary(MAX_SHOWN_VALUE_BYTES));
            text.push_str(&format!(", got {found}"));
        }
    }
    text
}

/// A thrown `ToolError`.
fn thrown(fields: engine::ToolErrorFields, detail: String, writes: bool) -> HandlerOutcome {
    let Some(kind) = handler_error_kind(&fields.type_) else {
        let outcome = Err(unexpected("The tool failed unexpectedly.", writes));
        return HandlerOutcome { outcome, detail: Some(detail) };
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
    HandlerOutcome { outcome: Err(failure), detail: None }
}

#[cfg(test)]
#[path = "handler_outcome_tests.rs"]
mod tests;
