//! One request to a service that the operator named, within the time that is left; what goes wrong becomes a fault that
//! says whether anything can have happened.

use std::fmt;
use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, StatusCode};
use toolwright_capabilities::Fault;

/// No answer is read beyond this.
const MOST_BYTES: usize = 16 << 20;
/// Left of a call's time to tell how it ended.
const RESERVE: Duration = Duration::from_millis(150);

/// A password or key: never shown.
#[derive(Clone)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Sends, and reads the whole answer. `UNREACHABLE` means that nothing was sent, `TIMEOUT` that effects are possible.
pub async fn ask(
    request: RequestBuilder,
    deadline: Instant,
    name: &str,
) -> Result<(StatusCode, String), Fault> {
    let left = deadline.saturating_duration_since(Instant::now()).saturating_sub(RESERVE);
    if left.is_zero() {
        return Err(Fault::new("UNREACHABLE", format!("no time is left to ask {name}")));
    }
    let failed = |error: reqwest::Error| {
        tracing::warn!("{name}: {}", chain(&error.without_url()));
        Fault::new("TIMEOUT", format!("{name} did not answer"))
    };
    let mut response = match request.timeout(left).send().await {
        Ok(response) => response,
        Err(error) if error.is_connect() || error.is_builder() => {
            tracing::warn!("{name}: {}", chain(&error.without_url()));
            return Err(Fault::new("UNREACHABLE", format!("{name} cannot be reached")));
        }
        Err(error) => return Err(failed(error)),
    };
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(Fault::new("TIMEOUT", format!("the answer of {name} is too long")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status(), String::from_utf8_lossy(&body).into_owned()))
}

/// A question that was not answered has changed nothing.
pub fn harmless(fault: Fault) -> Fault {
    if fault.code == "TIMEOUT" { Fault::new("UNREACHABLE", fault.message) } else { fault }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
