//! HTTP errors, as problem details (RFC 9457): for what never reached the orchestrator. The one place for statuses.

use hyper::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use toolwright_orchestrator::store;

use crate::body::Body;

/// Why a request cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    /// Where in the body: line and column.
    at: Option<(usize, usize)>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// Every kind of problem there is.
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
    /// Status, name and title.
    const fn row(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::BadRequest => (400, "bad-request", "The request cannot be understood"),
            Self::BadJson => (400, "bad-json", "The body is not the JSON that is expected"),
            Self::Unauthenticated => (401, "unauthenticated", "Who asks is not known"),
            Self::Forbidden => (403, "forbidden", "This is not allowed"),
            Self::CrossOrigin => (403, "cross-origin", "Web pages of other origins may not ask"),
            Self::Blocked => (403, "blocked", "This client is shut out for a while"),
            Self::NotFound => (404, "not-found", "There is no such thing"),
            Self::MethodNotAllowed => (405, "method-not-allowed", "This path has no such method"),
            Self::SlowRequest => (408, "slow-request", "The request did not arrive in time"),
            Self::Conflict => (409, "conflict", "It is not in a state that allows this"),
            Self::TooLarge => (413, "too-large", "The body is too large"),
            Self::NotJson => (415, "not-json", "The body must be JSON"),
            Self::Unprocessable => (422, "unprocessable", "The values do not fit"),
            Self::TooManyRequests => (429, "too-many-requests", "Too many requests at a time"),
            Self::HeadersTooLarge => (431, "headers-too-large", "The headers are too large"),
            Self::Internal => (500, "internal", "Something went wrong here"),
            Self::Unavailable => (503, "unavailable", "Not at the moment"),
        }
    }
}

#[derive(Serialize)]
struct Form<'a> {
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
            // What is left of such a request is not read.
            Kind::SlowRequest | Kind::TooLarge => Some((CONNECTION, HeaderValue::from_static("close"))),
            _ => None,
        };
        Self { kind, detail: detail.into(), at: None, header: header.map(Box::new) }
    }

    pub fn bad_json(detail: impl Into<String>, line: usize, column: usize) -> Self {
        Self { at: (line > 0).then_some((line, column)), ..Self::new(Kind::BadJson, detail) }
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(Kind::NotFound, format!("There is no such {what}."))
    }

    /// The client is shut out for so many milliseconds.
    pub fn blocked(left: i64) -> Self {
        let seconds = (left + 999) / 1000;
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
        let form = Form {
            r#type: format!("urn:toolwright:problem:{name}"),
            title,
            status,
            detail: &self.detail,
            instance: request_id.to_str().unwrap_or_default(),
            line: self.at.map(|(line, _)| line),
            column: self.at.map(|(_, column)| column),
        };
        let mut response = Response::new(Body::whole(serde_json::to_vec(&form).unwrap_or_default()));
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
                tracing::error!("{error}");
                Self::new(Kind::Unavailable, "The store cannot answer. Try again.")
            }
        }
    }
}
