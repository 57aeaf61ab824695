//! MCP over HTTP, at `/mcp`. The principal and the origin were checked before; here the session is looked up.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Either, Full};
use hyper::header::{HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{SessionRecord, SessionStatus};

use super::caller::Caller;
use super::handler::Handler;
use super::message;
use super::plain_call;
use super::state::McpState;
use super::stdio::HostOptions;
use crate::app::App;
use crate::auth;
use crate::body;
use crate::json;
use crate::options::Options;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult, new_session, owns};

static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The first revision without sessions.
pub(super) const STATELESS_REVISION: &str = "2026-07-28";

/// Maximum number of open sessions. Each has a task and a few kilobytes.
const MAX_SESSIONS: usize = 10_000;
/// The library closes a session that it has not seen for so long; its MCP host then opens another.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// The library sees direct calls only in sessions older than this. A session is thus idle for half an hour, at least,
/// when it is closed.
const TOUCH_AFTER: Duration = Duration::from_secs(15 * 60);
/// How often shutdown checks for running calls, and how long their responses may take to be written.
const SHUTDOWN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// No HTTP request of the library has this number.
const NO_REQUEST: u64 = u64::MAX;

/// The prefix of the orchestrator's session ids.
const SESSION_PREFIX: &str = "mcp_";

type LibraryResponse = Response<BoxBody<Bytes, Infallible>>;
type LibraryFuture = Pin<Box<dyn Future<Output = LibraryResponse> + Send>>;

/// The component that answers plain calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainCalls {
    Direct,
    /// The library, like every other message: the handler is wrapped by another one.
    Library,
}

/// The MCP endpoint of a server.
pub(crate) struct McpService {
    pub(super) state: Arc<McpState>,
    plain_calls: PlainCalls,
    sessions: Arc<LocalSessionManager>,
    library: Box<dyn Fn(Request<Full<Bytes>>) -> LibraryFuture + Send + Sync>,
    close_library: Box<dyn Fn() + Send + Sync>,
}

impl McpService {
    pub fn new<S: ServerHandler>(
        orchestrator: Orchestrator,
        options: &Options,
        wrap: impl Fn(Handler) -> S + Send + Sync + 'static,
        plain_calls: PlainCalls,
    ) -> Self {
        let (prompts, turn_idle) = (options.prompts.clone(), options.mcp_turn_idle);
        let host = HostOptions { prompts, mode: Mode::Text, turn_idle };
        let state = Arc::new(McpState::new(orchestrator, host));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE_TIMEOUT);
        let sessions = Arc::new(sessions);
        // The host and origin of every request were checked before it was routed.
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(options.limits.body_bytes)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let shared = Arc::clone(&state);
        let make_handler = move || Ok(wrap(Handler::new(Arc::clone(&shared), None)));
        let service = Arc::new(StreamableHttpService::new(make_handler, Arc::clone(&sessions), config));
        let cancellation = service.config.cancellation_token.clone();
        Self {
            state,
            plain_calls,
            sessions,
            library: Box::new(move |request| {
                let service = Arc::clone(&service);
                Box::pin(async move { service.handle(request).await })
            }),
            close_library: Box::new(move || cancellation.cancel()),
        }
    }

    /// Waits for running calls, then closes sessions and streams.
    pub async fn close(&self, deadline: Instant) {
        while self.state.call_count.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(SHUTDOWN_POLL_INTERVAL).await;
        }
        // The responses to the last calls are being written.
        tokio::time::sleep(SHUTDOWN_POLL_INTERVAL).await;
        (self.close_library)();
    }

    /// Restarts the library's idle timeout of a session for a direct call. False when the library has closed the
    /// session.
    pub(super) async fn touch(&self, session: &SessionRecord) -> bool {
        let age = auth::now().saturating_sub(session.created_at / 1000);
        if age < TOUCH_AFTER.as_secs() as i64 {
            return true;
        }
        let id = session.id.strip_prefix(SESSION_PREFIX).unwrap_or_default();
        let handle = self.sessions.sessions.read().await.get(id).cloned();
        match handle {
            // Any event restarts the timeout; this one does nothing else.
            Some(handle) => handle.close_request_wise_channel(NO_REQUEST).await.is_ok(),
            None => false,
        }
    }

    /// The caller of a request: with the session that its headers name, which must be active and the principal's own.
    async fn caller(&self, request: &ApiRequest<'_>) -> Result<Caller, Problem> {
        let headers = &request.head.headers;
        let principal = Arc::clone(request.principal()?);
        let Some(id) = headers.get(&SESSION_ID) else {
            if may_open_session(headers) && self.sessions.sessions.read().await.len() >= MAX_SESSIONS {
                let detail = format!("The server has its maximum of {MAX_SESSIONS} MCP sessions.");
                return Err(Problem::new(Kind::UNAVAILABLE, detail));
            }
            return Ok(Caller { principal, session: None });
        };
        let id = id.to_str().unwrap_or_default();
        let session = self.state.orchestrator.session(&session_id(id)).await?;
        let is_usable = |session: &Arc<SessionRecord>| {
            owns(&principal, session) && session.status == SessionStatus::Active
        };
        let session = session.filter(is_usable);
        let unknown = || Problem::not_found("MCP session", id).help("Send `initialize` to open a new one.");
        let session = session.ok_or_else(unknown)?;
        self.state.last_principals.note(&session.id, &principal);
        Ok(Caller { principal, session: Some(session) })
    }

    async fn call_library(&self, head: &Parts, body: Bytes, caller: Caller) -> LibraryResponse {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = head.uri.clone();
        *request.headers_mut() = head.headers.clone();
        request.extensions_mut().insert(caller);
        (self.library)(request).await
    }

    /// Creates the orchestrator's session of an MCP session that the library has opened.
    async fn create_session(&self, caller: &Caller, response: &LibraryResponse) -> Result<(), Problem> {
        let opened = response.headers().get(&SESSION_ID).and_then(|id| id.to_str().ok());
        let Some(id) = opened else { return Ok(()) };
        let session =
            NewSession { id: Some(session_id(id)), ..new_session(&caller.principal, self.state.mode) };
        self.state.orchestrator.create_session(session).await?;
        Ok(())
    }

    async fn end_session(&self, session: &SessionRecord) -> ApiResult {
        self.state.running_calls.cancel_session(&session.id);
        self.state.orchestrator.end_session(&session.id).await?;
        // Hosts expect 200 or 204 here, not the library's 202.
        Ok(body::no_content())
    }
}

pub(crate) async fn handle(mut request: ApiRequest<'_>) -> ApiResult {
    // Read first, so that the session is looked up after a slow body has arrived.
    let body = request.read_body().await?;
    let service = &request.app.mcp;
    let head = request.head;
    let caller = service.caller(&request).await?;
    if head.method == Method::POST {
        if service.plain_calls == PlainCalls::Direct
            && let Some(reply) = plain_call::answer(service, &head.headers, &caller, &body).await
        {
            return Ok(body::response(json::MEDIA_TYPE, reply));
        }
        if let Err(error) = message::check(&body) {
            let mut response = json::response(&*error);
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(response);
        }
    }
    // The library may answer any message with a stream; only a GET is one for as long as the MCP host likes.
    let session = caller.session.as_ref().filter(|_| head.method == Method::GET);
    let session = session.map(|session| session.id.as_str());
    let App { streams, options, .. } = &**request.app;
    let counted = streams.open(&caller.principal, session, &options.limits)?;
    let response = service.call_library(head, body, caller.clone()).await;
    if response.status() == StatusCode::NOT_ACCEPTABLE {
        let detail =
            "Send the header `accept: application/json, text/event-stream`; a GET needs only the latter.";
        return Err(Problem::new(Kind::NOT_ACCEPTABLE, detail));
    }
    match &caller.session {
        None => service.create_session(&caller, &response).await?,
        Some(session) if head.method == Method::DELETE && response.status().is_success() => {
            return service.end_session(session).await;
        }
        Some(_) => {}
    }
    Ok(response.map(|body| body::end_with(Either::Right(body.boxed_unsync()), pending(), counted)))
}

/// An `initialize` request without a protocol version in its headers opens a session as well.
fn may_open_session(headers: &HeaderMap) -> bool {
    headers.get(&PROTOCOL_VERSION).is_none_or(|version| version != STATELESS_REVISION)
}

fn session_id(id: &str) -> String {
    format!("{SESSION_PREFIX}{id}")
}
