//! HTTP errors as problem details (RFC 9457), for requests that did not reach the orchestrator. The only place that
//! maps errors to HTTP statuses.

use hyper::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use toolwright_orchestrator::store;

use crate::body::Body;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    /// Line and column in the body.
    position: Option<(usize, usize)>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// Every kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    BadRequest,
    BadJson,
    Unauthenticated,
    Forbidden,
    CrossOrigin,
    Blocked,
    NotFound,
    MethodNotAllowed,
    SlowRequest,
    Conflict,
    TooLarge,
    NotJson,
    Unprocessable,
    TooManyRequests,
    HeadersTooLarge,
    Internal,
    Unavailable,
}

impl Kind {
    /// Status, name in the type URN, and title.
    const fn row(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::BadRequest => (400, "bad-request", "Bad request"),
            Self::BadJson => (400, "bad-json", "Invalid JSON body"),
            Self::Unauthenticated => (401, "unauthenticated", "Unauthenticated"),
            Self::Forbidden => (403, "forbidden", "Forbidden"),
            Self::CrossOrigin => (403, "cross-origin", "Cross-origin request refused"),
            Self::Blocked => (403, "blocked", "Client blocked"),
            Self::NotFound => (404, "not-found", "Not found"),
            Self::MethodNotAllowed => (405, "method-not-allowed", "Method not allowed"),
            Self::SlowRequest => (408, "slow-request", "Request timeout"),
            Self::Conflict => (409, "conflict", "Conflict"),
            Self::TooLarge => (413, "too-large", "Body too large"),
            Self::NotJson => (415, "not-json", "Unsupported media type"),
            Self::Unprocessable => (422, "unprocessable", "Unprocessable values"),
            Self::TooManyRequests => (429, "too-many-requests", "Too many requests"),
            Self::HeadersTooLarge => (431, "headers-too-large", "Headers too large"),
            Self::Internal => (500, "internal", "Internal server error"),
            Self::Unavailable => (503, "unavailable", "Service unavailable"),
        }
    }
}

#[derive(Serialize)]
struct ProblemDetails<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    instance: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl Problem {
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let header = match kind {
            Kind::Unauthenticated => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Kind::TooManyRequests | Kind::Unavailable => Some((RETRY_AFTER, HeaderValue::from_static("1"))),
            // The rest of such a request is not read.
            Kind::SlowRequest | Kind::TooLarge => Some((CONNECTION, HeaderValue::from_static("close"))),
            _ => None,
        };
        Self { kind, detail: detail.into(), position: None, header: header.map(Box::new) }
    }

    pub fn bad_json(detail: impl Into<String>, line: usize, column: usize) -> Self {
        Self { position: (line > 0).then_some((line, column)), ..Self::new(Kind::BadJson, detail) }
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(Kind::NotFound, format!("There is no such {what}."))
    }

    /// The client is blocked for another `remaining_ms`.
    pub fn blocked(remaining_ms: i64) -> Self {
        let seconds = (remaining_ms + 999) / 1000;
        let mut problem = Self::new(Kind::Blocked, format!("The block ends in {seconds} s."));
        problem.header = Some(Box::new((RETRY_AFTER, HeaderValue::from(seconds))));
        problem
    }

    pub fn method_not_allowed(allow: &str) -> Self {
        let mut problem = Self::new(Kind::MethodNotAllowed, format!("Use {allow}."));
        problem.header = HeaderValue::from_str(allow).ok().map(|allow| Box::new((ALLOW, allow)));
        problem
    }

    pub fn response(&self, request_id: &HeaderValue) -> Response<Body> {
        let (status, name, title) = self.kind.row();
        let details = ProblemDetails {
            r#type: format!("urn:toolwright:problem:{name}"),
            title,
            status,
            detail: &self.detail,
            instance: request_id.to_str().unwrap_or_default(),
            line: self.position.map(|(line, _)| line),
            column: self.position.map(|(_, column)| column),
        };
        let mut response = Response::new(Body::whole(serde_json::to_vec(&details).unwrap_or_default()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.header.as_deref().cloned());
        response
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NoSession(_) => Self::not_found("session"),
            error => {
                tracing::error!("the store failed: {error}");
                Self::new(Kind::Unavailable, "The store is unavailable. Try again.")
            }
        }
    }
}
