//! Why a server could not be reached, as a sentence for the operator. The MCP library's own errors name its types; over
//! HTTP the last response says more.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use rmcp::service::{ClientInitializeError, ServiceError};

/// Why the last request over HTTP failed; shared by the client that sends and the connection that reports it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpProblem(Arc<Mutex<Option<String>>>);

impl HttpProblem {
    pub fn clear(&self) {
        self.set(None);
    }

    pub fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn record_status(&self, url: &str, status: StatusCode) {
        let fix = match status.as_u16() {
            401 | 403 => {
                "set `headers = { authorization = \"Bearer ${TOKEN}\" }` in its `[[mcp_servers]]`, with a valid token"
            }
            404 => "there is no MCP at this path; correct `url`",
            405 => "this path does not accept POST, so there is no MCP; correct `url`",
            301 | 302 | 303 | 307 | 308 => "redirects are not followed; write the final address into `url`",
            429 => "it limits requests; try again later",
            500..=599 => "the server has failed; its own log has the cause",
            _ => "it refuses the request; check `url` and `headers`",
        };
        self.set(Some(format!("{} answers {}: {fix}", public_address(url), status.as_u16())));
    }

    pub fn record_media_type(&self, url: &str, media_type: Option<&str>) {
        let found = media_type.unwrap_or("a body without a content type");
        self.set(Some(format!(
            "{} answers with {found} instead of JSON: there is no MCP at this path; correct `url`",
            public_address(url)
        )));
    }

    /// The request was not answered.
    pub fn record_unanswered(&self, url: &str, error: &reqwest::Error) {
        let url = public_address(url);
        let cause = innermost(error);
        self.set(Some(match cause.to_lowercase() {
            text if text.contains("connection refused") => {
                format!("connection refused at {url}: start the server, or correct `url`")
            }
            text if text.contains("dns error") || text.contains("lookup address") => {
                format!("the host of {url} is unknown: correct `url`")
            }
            _ => format!("no answer from {url}: {cause}"),
        }));
    }

    fn set(&self, problem: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

/// An address without the parts that may be secrets: user, password and query.
fn public_address(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else { return "its address".to_owned() };
    // Fails only for addresses that cannot have these parts.
    let _ = (parsed.set_username(""), parsed.set_password(None));
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.into()
}

/// The text of the cause at the end of the chain: the texts before it name types.
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Why the connection could not be initialized.
pub(crate) fn describe_connect(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            format!("the connection has failed: {}", innermost(error))
        }
        ClientInitializeError::ConnectionClosed(_) => {
            "it has closed the connection before it was initialized; the log has what it wrote to stderr"
                .to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refuses to be initialized: {} ({})", error.message, error.code.0)
        }
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "it answers `initialize` with another message, so it does not speak MCP".to_owned()
        }
        ClientInitializeError::NoCompatibleProtocolVersion { client_supported, server_supported } => {
            let names = |versions: &[rmcp::model::ProtocolVersion]| {
                versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            let (theirs, ours) = (names(server_supported), names(client_supported));
            format!("it speaks the MCP revisions {theirs}, and this client {ours}")
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe_connect(fallback),
        other => other.to_string(),
    }
}

/// Why a request on an open connection has failed.
pub(crate) fn describe_request(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("{} ({})", error.message, error.code.0),
        ServiceError::TransportSend(error) => innermost(error),
        ServiceError::TransportClosed => "the connection was closed".to_owned(),
        other => other.to_string(),
    }
}
