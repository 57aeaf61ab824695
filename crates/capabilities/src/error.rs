//! The error of a capability: a code that docs/reference/capabilities.md lists, and a message that a handler may read.
//! Messages name what the handler wrote (its host, its header), never addresses, values or file paths of the server.

use std::time::{Duration, SystemTime};

/// Maximum wait that is passed on; a longer one is an error of the service.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A result of a capability call.
pub type Result<T, E = CapabilityError> = std::result::Result<T, E>;

/// An error with its causes: the message of an HTTP client's own error ends at "error sending request".
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// How a capability call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CapabilityError {
    pub code: &'static str,
    pub message: String,
    /// When a retry may succeed, if the back end said so.
    pub retry_after_ms: Option<u32>,
}

impl CapabilityError {
    /// An error with one of the documented codes.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_ms: None }
    }

    /// Adds the wait that the `Retry-After` header of a response asks for.
    #[must_use]
    pub fn retry_after(mut self, header: Option<&str>) -> Self {
        self.retry_after_ms = header.and_then(retry_after_ms);
        self
    }

    pub fn not_allowed(message: impl Into<String>) -> Self {
        Self::new("NOT_ALLOWED", message)
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("INVALID_ARGUMENT", message)
    }

    pub fn not_configured(message: impl Into<String>) -> Self {
        Self::new("NOT_CONFIGURED", message)
    }

    /// Nothing was sent, so there are no side effects.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new("UNREACHABLE", message)
    }

    /// The request was sent but its response is missing or unusable, so side effects are possible.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new("TIMEOUT", message)
    }
}

/// The wait of a `Retry-After` header in milliseconds: a number of seconds, or a date.
#[expect(clippy::disallowed_methods, reason = "the date in a header is compared with the system's clock")]
pub fn retry_after_ms(header: &str) -> Option<u32> {
    wait_ms(header, SystemTime::now())
}

fn wait_ms(header: &str, now: SystemTime) -> Option<u32> {
    let wait = match header.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(header.trim()).ok()?.duration_since(now).unwrap_or_default(),
    };
    u32::try_from(wait.min(MAX_RETRY_AFTER).as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (header, expected) in [
            ("2", Some(2000)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:40 GMT", Some(3000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("999999999999", Some(86_400_000)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(wait_ms(header, now), expected, "{header}");
        }
    }
}
