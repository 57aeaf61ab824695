//! HTTP errors as problem details (RFC 9457), for requests that did not reach the orchestrator. The only place that
//! maps errors to HTTP statuses.

use hyper::header::{ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use toolwright_console::error_page::ErrorPage;
use toolwright_orchestrator::store;

use crate::body::{self, Body};
use crate::{console, json};

/// Longer ids are shortened in a message.
const MAX_ID_CHARS: usize = 100;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    /// Line and column in the body.
    position: Option<(usize, usize)>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// A code for programs, in wires whose errors have one.
    code: Option<String>,
}

/// The form that a route's clients read errors in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// Problem details, RFC 9457.
    Problem,
    /// A sentence: chat clients show the body as it is.
    Sentence,
    /// `{"error": {message, type, param, code}}`, as OpenAI's SDKs read it.
    OpenAi,
    /// A page, for people.
    Page,
}

/// A kind of problem: status, name in the type URN, and title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind(u16, &'static str, &'static str);

impl Kind {
    pub const BAD_REQUEST: Self = Self(400, "bad-request", "Bad request");
    pub const BAD_JSON: Self = Self(400, "bad-json", "Invalid JSON body");
    pub const UNAUTHENTICATED: Self = Self(401, "unauthenticated", "Unauthenticated");
    pub const FORBIDDEN: Self = Self(403, "forbidden", "Forbidden");
    pub const CROSS_ORIGIN: Self = Self(403, "cross-origin", "Cross-origin request refused");
    pub const BLOCKED: Self = Self(403, "blocked", "Client blocked");
    pub const CONFIRMATION_TOKEN_REQUIRED: Self =
        Self(403, "confirmation-token-required", "Confirmation token required");
    pub const NOT_FOUND: Self = Self(404, "not-found", "Not found");
    pub const METHOD_NOT_ALLOWED: Self = Self(405, "method-not-allowed", "Method not allowed");
    pub const NOT_ACCEPTABLE: Self = Self(406, "not-acceptable", "Not acceptable");
    pub const SLOW_REQUEST: Self = Self(408, "slow-request", "Request timeout");
    pub const CONFLICT: Self = Self(409, "conflict", "Conflict");
    pub const CONFIRMATION_ANSWERED: Self =
        Self(409, "confirmation-answered", "Confirmation request already answered");
    pub const CONFIRMATION_EXPIRED: Self = Self(409, "confirmation-expired", "Confirmation request expired");
    pub const CONFIRMATION_TOKEN_WRONG: Self =
        Self(409, "confirmation-token-wrong", "Wrong confirmation token");
    pub const TOO_LARGE: Self = Self(413, "too-large", "Body too large");
    pub const NOT_JSON: Self = Self(415, "not-json", "Unsupported media type");
    pub const UNPROCESSABLE: Self = Self(422, "unprocessable", "Unprocessable values");
    pub const UPGRADE_REQUIRED: Self = Self(426, "upgrade-required", "Upgrade required");
    pub const TOO_MANY_REQUESTS: Self = Self(429, "too-many-requests", "Too many requests");
    pub const HEADERS_TOO_LARGE: Self = Self(431, "headers-too-large", "Headers too large");
    pub const INTERNAL: Self = Self(500, "internal", "Internal server error");
    pub const BAD_GATEWAY: Self = Self(502, "model-failed", "The model failed");
    pub const UNAVAILABLE: Self = Self(503, "unavailable", "Service unavailable");
}

impl Problem {
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let header = match kind {
            Kind::UNAUTHENTICATED => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Kind::TOO_MANY_REQUESTS | Kind::UNAVAILABLE => Some((RETRY_AFTER, HeaderValue::from_static("1"))),
            Kind::UPGRADE_REQUIRED => Some((UPGRADE, HeaderValue::from_static("websocket"))),
            // The rest of such a request is not read.
            Kind::SLOW_REQUEST | Kind::TOO_LARGE => Some((CONNECTION, HeaderValue::from_static("close"))),
            _ => None,
        };
        Self { kind, detail: detail.into(), position: None, header: header.map(Box::new), code: None }
    }

    pub fn bad_json(detail: impl Into<String>, line: usize, column: usize) -> Self {
        Self { position: (line > 0).then_some((line, column)), ..Self::new(Kind::BAD_JSON, detail) }
    }

    /// Adds a code for programs.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The text for a person.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub fn code(&self) -> &str {
        self.code.as_deref().unwrap_or(self.kind.1)
    }

    /// The caller may see nothing of this kind with this id.
    pub fn not_found(noun: &str, id: &str) -> Self {
        let shortened: String = id.chars().take(MAX_ID_CHARS).collect();
        let dots = if shortened.len() < id.len() { "…" } else { "" };
        Self::new(Kind::NOT_FOUND, format!("{noun} `{shortened}{dots}` not found."))
    }

    /// Adds a sentence on what to do.
    pub fn help(mut self, help: &str) -> Self {
        self.detail = format!("{} {help}", self.detail);
        self
    }

    /// An unexpected failure. Its cause is in the log, never in the response.
    pub fn internal() -> Self {
        Self::new(Kind::INTERNAL, "The request failed. The server's log has the cause.")
    }

    /// The client is blocked for another `remaining_ms`.
    pub fn blocked(remaining_ms: i64) -> Self {
        let seconds = (remaining_ms + 999) / 1000;
        let mut problem = Self::new(Kind::BLOCKED, format!("The block ends in {seconds} s."));
        problem.header = Some(Box::new((RETRY_AFTER, HeaderValue::from(seconds))));
        problem
    }

    pub fn method_not_allowed(allow: &str) -> Self {
        let mut problem = Self::new(Kind::METHOD_NOT_ALLOWED, format!("Use {allow}."));
        problem.header = HeaderValue::from_str(allow).ok().map(|allow| Box::new((ALLOW, allow)));
        problem
    }

    pub fn response(&self, request_id: &HeaderValue, form: ErrorForm) -> Response<Body> {
        let status = self.kind.0;
        let mut response = match form {
            ErrorForm::Problem => {
                body::response("application/problem+json", self.details(request_id).to_string())
            }
            ErrorForm::Sentence => body::response("text/plain; charset=utf-8", self.detail.clone()),
            ErrorForm::OpenAi => body::response(json::MEDIA_TYPE, self.openai_error().to_string()),
            ErrorForm::Page => body::response(console::HTML, self.page(request_id)),
        };
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().extend(self.header.as_deref().cloned());
        response
    }

    /// Whether the caller has to sign in, or to sign in again.
    pub fn is_unauthenticated(&self) -> bool {
        self.kind == Kind::UNAUTHENTICATED
    }

    fn page(&self, request_id: &HeaderValue) -> String {
        let Kind(status, _, title) = self.kind;
        let request_id = request_id.to_str().unwrap_or_default();
        let page = ErrorPage { status, title, detail: &self.detail, request_id };
        toolwright_console::render(&page).unwrap_or_else(|_| title.to_owned())
    }

    fn openai_error(&self) -> Value {
        let kind = match self.kind.0 {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        let code = self.code.as_deref();
        json!({ "error": { "message": self.detail, "type": kind, "param": null, "code": code } })
    }

    fn details(&self, request_id: &HeaderValue) -> Value {
        let Kind(status, name, title) = self.kind;
        let mut details = json!({
            "type": format!("urn:toolwright:problem:{name}"),
            "title": title,
            "status": status,
            "detail": self.detail,
            "instance": request_id.to_str().unwrap_or_default(),
        });
        if let Some((line, column)) = self.position {
            details["line"] = line.into();
            details["column"] = column.into();
        }
        details
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NoSession(id) => Self::not_found("Session", &id),
            store::Error::Exists(_) => Self::new(Kind::CONFLICT, "There is a session with this id already."),
            error => {
                tracing::error!("the store failed: {error}");
                Self::new(Kind::UNAVAILABLE, "The store is unavailable. Try again.")
            }
        }
    }
}
