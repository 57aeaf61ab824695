//! Sends one request to a configured service before the deadline. Errors say whether side effects are possible.

use std::time::{Duration, Instant};

use reqwest::header::RETRY_AFTER;
use reqwest::{RequestBuilder, StatusCode};
use toolwright_capabilities::{CapabilityError, Result, error_chain};

const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// The part of a call's time that is reserved for reporting the result.
const RESERVED_TIME: Duration = Duration::from_millis(150);

/// Sends a request and reads the whole response. `UNREACHABLE` means that nothing was sent, `TIMEOUT` that side effects
/// are possible, `RATE_LIMIT` that the service has refused it for now. The log names the service's host.
pub async fn send_request(
    request: RequestBuilder,
    deadline: Instant,
    name: &str,
) -> Result<(StatusCode, String)> {
    let timeout = deadline.saturating_duration_since(Instant::now()).saturating_sub(RESERVED_TIME);
    if timeout.is_zero() {
        return Err(CapabilityError::unreachable(format!("no time is left to send a request to {name}")));
    }
    let failed = |error: reqwest::Error| {
        let (code, message) = match error.is_connect() || error.is_builder() {
            true => ("UNREACHABLE", format!("could not connect to {name}")),
            false => ("TIMEOUT", format!("{name} did not respond")),
        };
        let host = error.url().and_then(|url| url.host_str()).unwrap_or_default().to_owned();
        tracing::warn!("the request to {name} at {host} failed: {}", error_chain(&error.without_url()));
        CapabilityError::new(code, message)
    };
    let mut response = request.timeout(timeout).send().await.map_err(failed)?;
    let is_failure =
        |status: StatusCode| status.is_server_error() || matches!(status.as_u16(), 401 | 403 | 429);
    if is_failure(response.status()) {
        let host = response.url().host_str().unwrap_or_default();
        tracing::warn!("{name} at {host} responded with {}", response.status());
    }
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let limited = CapabilityError::new("RATE_LIMIT", format!("{name} limits the request rate"));
        return Err(limited.retry_after(wait));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            return Err(CapabilityError::timeout(format!("the response of {name} is too large")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status(), String::from_utf8_lossy(&body).into_owned()))
}

/// The error of a request that only reads: even without a response it had no side effects.
pub fn without_effects(error: CapabilityError) -> CapabilityError {
    if error.code == "TIMEOUT" { CapabilityError::unreachable(error.message) } else { error }
}
