//! The capability calls of one attempt, as far as they decide how an attempt has failed: which of them failed, and
//! whether one may have changed something. A failure that the handler does not handle keeps its kind in the envelope.

use serde_json::Value;
use toolwright_capabilities::retry_after_ms;
use toolwright_contract::{ErrorKind, Failure, SideEffects, ToolSpec};
use toolwright_engine::HostError;

use crate::engine_functions;

/// The wait that a failure suggests if the service limits the rate and does not say for how long.
pub(crate) const DEFAULT_RETRY_AFTER_MS: u32 = 5000;

/// The outcomes of the capability calls so far.
#[derive(Debug, Default)]
pub(crate) struct CapabilityCalls {
    /// The last failure of each code.
    failed: Vec<FailedCall>,
    /// The last call, if it was an `http.fetch` that was answered with 429 or 5xx.
    http_error: Option<HttpError>,
    /// How many calls may have changed something.
    writes: usize,
}

#[derive(Debug)]
struct FailedCall {
    path: String,
    error: HostError,
}

#[derive(Debug, Clone, Copy)]
struct HttpError {
    status: u64,
    retry_after_ms: Option<u32>,
}

impl CapabilityCalls {
    /// Counts a call before it is made: one that never returns may have changed something.
    pub fn begin(&mut self, may_write: bool) {
        self.writes += usize::from(may_write);
    }

    /// Remembers how a call ended.
    pub fn end(&mut self, path: &str, may_write: bool, result: &Result<Value, HostError>) {
        self.http_error = result.as_ref().ok().filter(|_| path == "http.fetch").and_then(http_error);
        let changed_nothing = match result {
            Ok(response) => is_refusal(path, response),
            Err(error) => !matches!(error.code.as_str(), "TIMEOUT" | "CANCELLED"),
        };
        if may_write && changed_nothing {
            self.writes = self.writes.saturating_sub(1);
        }
        if let Err(error) = result {
            self.failed.retain(|known| known.error.code != error.code);
            self.failed.push(FailedCall { path: path.to_owned(), error: error.clone() });
        }
    }

    /// The failure of an attempt whose handler threw an error with this `code`, if a capability is the cause: it has
    /// failed with the code, or its last HTTP response was an error of the service.
    pub fn cause_of(&self, code: Option<&str>, spec: &ToolSpec) -> Option<Failure> {
        let failed = self.failed.iter().find(|call| code == Some(call.error.code.as_str()));
        let failure = match failed {
            Some(call) => failure(&call.path, &call.error)?,
            None => http_failure(self.http_error?),
        };
        let partial_side_effects = spec.side_effects == SideEffects::Writes && self.writes > 0;
        let retryable = failure.retryable && (!partial_side_effects || spec.idempotent);
        Some(Failure { partial_side_effects, retryable, ..failure })
    }
}

/// Whether a call of this function may change something. `effects_of` returns the side effects of a tool.
pub(crate) fn may_write(
    path: &str,
    args: &[Value],
    effects_of: impl Fn(&str) -> Option<SideEffects>,
) -> bool {
    match path {
        "http.fetch" => {
            let method = args.get(1).and_then(|init| init.get("method")).and_then(Value::as_str);
            !method.is_none_or(|method| matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD"))
        }
        "callTool" => args.first().and_then(Value::as_str).and_then(effects_of) == Some(SideEffects::Writes),
        _ => engine_functions::find(path).is_some_and(|function| function.needs == SideEffects::Writes),
    }
}

/// Whether a response says that nothing was done.
fn is_refusal(path: &str, response: &Value) -> bool {
    match path {
        "http.fetch" => response["status"].as_u64().is_some_and(|status| (400..500).contains(&status)),
        "callTool" => response["error"]["partialSideEffects"] == false,
        _ => false,
    }
}

/// A response that says that the service cannot answer now.
fn http_error(response: &Value) -> Option<HttpError> {
    let status = response["status"].as_u64().filter(|status| *status == 429 || *status >= 500)?;
    Some(HttpError { status, retry_after_ms: retry_after(response) })
}

/// The wait that a response of `http.fetch` asks for.
pub(crate) fn retry_after(response: &Value) -> Option<u32> {
    retry_after_ms(response["headers"]["retry-after"].as_str()?)
}

fn http_failure(error: HttpError) -> Failure {
    let message = format!("The service responded with status {}.", error.status);
    match error.status {
        429 => rate_limited(message, error.retry_after_ms),
        _ => transient(message),
    }
}

/// The failure that a capability's error code means; none for an error of the handler itself.
pub(crate) fn failure(path: &str, error: &HostError) -> Option<Failure> {
    let service = service_name(path);
    let refused = |kind, message: String| Some(Failure::new(kind, message));
    match error.code.as_str() {
        "TIMEOUT" => Some(transient(format!("{service} did not respond in time."))),
        "UNREACHABLE" => Some(transient(format!("{service} is unreachable."))),
        "CLOSED" => Some(transient("The client is disconnected.".to_owned())),
        "RATE_LIMIT" => {
            Some(rate_limited(format!("{service} limits the request rate."), error.retry_after_ms))
        }
        "FORBIDDEN" => refused(ErrorKind::Auth, format!("{service} refused access.")),
        "NOT_FOUND" => refused(ErrorKind::NotFound, format!("{service} has no such object.")),
        "CONFLICT" => refused(ErrorKind::Conflict, format!("{service} reports a conflict.")),
        "EXPIRED" => refused(ErrorKind::Conflict, "The object has expired.".to_owned()),
        // The message of the capability names the argument, its value and what is allowed.
        "INVALID_NAMESPACE" | "INVALID_TIMEZONE" => refused(ErrorKind::Validation, error.message.clone()),
        "REJECTED" => refused(ErrorKind::Permanent, format!("{service} rejected the content.")),
        "NOT_CONFIGURED" => Some(
            Failure::new(ErrorKind::Permanent, format!("{service} is not configured on this server."))
                .suggest("Continue without it, and tell the user that it cannot be used."),
        ),
        _ => None,
    }
}

fn transient(message: String) -> Failure {
    Failure { retryable: true, ..Failure::new(ErrorKind::Transient, message) }
}

fn rate_limited(message: String, retry_after_ms: Option<u32>) -> Failure {
    let wait = retry_after_ms.unwrap_or(DEFAULT_RETRY_AFTER_MS);
    Failure { retryable: true, ..Failure::new(ErrorKind::RateLimit, message) }
        .retry_after(wait.into())
        .suggest(format!("Wait {} s before calling it again.", wait.div_ceil(1000)))
}

/// The name of a function for models.
fn service_name(path: &str) -> &'static str {
    match path.split('.').next().unwrap_or_default() {
        "kb" => "The knowledge base",
        "calendar" => "The calendar",
        "images" => "The image service",
        "messaging" => "The client",
        _ => "The service",
    }
}

#[cfg(test)]
#[path = "capability_calls_tests.rs"]
mod tests;
