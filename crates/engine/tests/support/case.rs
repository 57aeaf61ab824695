//! The test files of tools (`tests/*.json`): their stubs and expectations.
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use regex::Regex;
use serde_json::{Map, Value, json};
use toolwright_engine::{Failure, Host, HostError, HostFuture, Level};

pub struct CaseHost {
    stubs: Map<String, Value>,
    mode: String,
    turns: AtomicUsize,
    pub calls: Mutex<Vec<(String, Vec<Value>)>>,
}

impl CaseHost {
    pub fn new(case: &Value) -> Arc<Self> {
        Arc::new(Self {
            stubs: case["capabilities"].as_object().cloned().unwrap_or_default(),
            mode: case["mode"].as_str().unwrap_or("text").to_owned(),
            turns: AtomicUsize::new(0),
            calls: Mutex::default(),
        })
    }

    fn answer(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        if path == "voice.isActive" {
            return Ok(json!(self.mode == "voice"));
        }
        self.calls.lock().unwrap().push((path.to_owned(), args));
        match self.stubs.get(path) {
            Some(stub) if stub.get("throws").is_some() => Err(HostError {
                code: stub["throws"]["code"].as_str().unwrap_or("").to_owned(),
                message: stub["throws"]["message"].as_str().unwrap_or("").to_owned(),
                retry_after_ms: stub["throws"]["retryAfterMs"].as_u64().map(|wait| wait as u32),
            }),
            Some(stub) if stub.get("returns_each").is_some() => {
                Ok(stub["returns_each"][self.turns.fetch_add(1, Ordering::SeqCst)].clone())
            }
            Some(stub) => Ok(stub["returns"].clone()),
            None if path == "audit.log" || path == "progress" => Ok(Value::Null),
            None => Err(HostError::new("NOT_CONFIGURED", path)),
        }
    }
}

impl Host for CaseHost {
    fn call(&self, path: &str, args: Vec<Value>) -> HostFuture {
        let answer = self.answer(path, args);
        Box::pin(async move { answer })
    }

    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        self.answer(path, args)
    }

    fn console(&self, _level: Level, _text: String) {}
}

/// The envelope of a result, as far as the cases check it.
pub fn envelope(result: Result<Value, Failure>) -> Value {
    match result {
        Ok(value) => value,
        Err(Failure::Thrown { tool_error: Some(error), .. }) => json!({
            "ok": false,
            "error": {
                "type": error.type_, "message": error.message, "retryable": error.retryable,
                "partialSideEffects": error.partial_side_effects,
                "idempotencyRequired": error.idempotency_required,
            }
        }),
        // The orchestrator makes the envelope of a capability's failure that the handler does not catch.
        Err(Failure::Thrown { code: Some(code), .. }) if code == "RATE_LIMIT" => json!({
            "ok": false,
            "error": { "type": code, "retryable": true, "partialSideEffects": false,
                "details": { "retryAfterMs": 2000 } }
        }),
        Err(other) => json!({ "ok": false, "error": { "type": "INTERNAL", "message": other.to_string() } }),
    }
}

pub fn matches(expected: &Value, actual: &Value) -> bool {
    if let Some(matcher) = matcher(expected) {
        return matcher.0(&matcher.1, actual);
    }
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(given)) => {
            wanted.len() == given.len()
                && wanted
                    .iter()
                    .all(|(key, value)| given.get(key).is_some_and(|actual| matches(value, actual)))
        }
        (Value::Array(wanted), Value::Array(given)) => {
            wanted.len() == given.len()
                && wanted.iter().zip(given).all(|(value, actual)| matches(value, actual))
        }
        (Value::Number(wanted), Value::Number(given)) => wanted.as_f64() == given.as_f64(),
        _ => expected == actual,
    }
}

type Matcher = fn(&Value, &Value) -> bool;

fn matcher(expected: &Value) -> Option<(Matcher, Value)> {
    let (name, of) = expected.as_object().filter(|object| object.len() == 1)?.iter().next()?;
    let matcher: Matcher = match name.as_str() {
        "$any" => |_, _| true,
        "$type" => of_type,
        "$regex" => |pattern, actual| {
            actual.as_str().is_some_and(|text| Regex::new(pattern.as_str().unwrap()).unwrap().is_match(text))
        },
        "$length" => |length, actual| {
            let count = actual.as_array().map(Vec::len).or(actual.as_str().map(|text| text.chars().count()));
            count == length.as_u64().map(|length| length as usize)
        },
        "$includes" => |part, actual| match part {
            Value::Object(members) => members
                .iter()
                .all(|(key, value)| actual.get(key).is_some_and(|actual| matches(value, actual))),
            one => actual.as_array().is_some_and(|items| items.iter().any(|item| matches(one, item))),
        },
        _ => return None,
    };
    Some((matcher, of.clone()))
}

fn of_type(name: &Value, actual: &Value) -> bool {
    match name.as_str().unwrap() {
        "string" => actual.is_string(),
        "integer" => actual.is_i64(),
        "number" => actual.is_number(),
        "boolean" => actual.is_boolean(),
        "object" => actual.is_object(),
        "array" => actual.is_array(),
        "null" => actual.is_null(),
        other => panic!("no such type: {other}"),
    }
}
