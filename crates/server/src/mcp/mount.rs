//! MCP over HTTP, at `/mcp`. Who asks and from where was checked before; here it is checked whose session is named.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::header::HeaderName;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::SessionStatus;

use super::caller::Caller;
use super::direct;
use super::handler::Handler;
use super::prompts::Prompts;
use super::sessions;
use super::shared::Shared;
use crate::body::{self, Body};
use crate::dispatch::{Answer, Asked};
use crate::problem::{Kind, Problem};

static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The revision from which on every request stands for itself.
pub(super) const STATELESS: &str = "2026-07-28";
/// How often is looked whether calls are done, and how long their answers may take to be written.
const BREATH: Duration = Duration::from_millis(20);

type Answered = Pin<Box<dyn Future<Output = Response<BoxBody<Bytes, std::convert::Infallible>>> + Send>>;

/// Who answers a plain call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    Direct,
    /// The handler around that of the toolset, like everything else.
    Wrapped,
}

/// The MCP side of a server.
pub(crate) struct Mount {
    shared: Arc<Shared>,
    plain: Plain,
    sessions: Arc<LocalSessionManager>,
    handle: Box<dyn Fn(Request<Full<Bytes>>) -> Answered + Send + Sync>,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl Mount {
    pub fn new<S: ServerHandler>(
        orchestrator: Orchestrator,
        prompts: Prompts,
        most_bytes: usize,
        wrap: impl Fn(Handler) -> S + Send + Sync + 'static,
        plain: Plain,
    ) -> Self {
        let shared = Arc::new(Shared::new(orchestrator, prompts, Mode::Text));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(sessions::IDLE);
        let sessions = Arc::new(sessions);
        // Host and origin are checked for all paths alike, before anything is routed.
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(most_bytes)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let made = Arc::clone(&shared);
        let make = move || Ok(wrap(Handler::new(Arc::clone(&made), None)));
        let service = Arc::new(StreamableHttpService::new(make, Arc::clone(&sessions), config));
        let stopped = service.config.cancellation_token.clone();
        Self {
            shared,
            plain,
            sessions,
            handle: Box::new(move |request| {
                let service = Arc::clone(&service);
                Box::pin(async move { service.handle(request).await })
            }),
            stop: Box::new(move || stopped.cancel()),
        }
    }

    /// Waits for running calls, then ends sessions and streams.
    pub async fn close(&self, deadline: Instant) {
        while self.shared.calls.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(BREATH).await;
        }
        // What the last calls came to is on its way out.
        tokio::time::sleep(BREATH).await;
        (self.stop)();
    }

    async fn has_room(&self) -> bool {
        self.sessions.sessions.read().await.len() < sessions::MOST
    }
}

pub(crate) async fn answer(asked: Asked<'_>) -> Answer {
    let mount = &asked.app.mcp;
    let mut caller = Caller { principal: Arc::clone(asked.principal()?), session: None };
    let headers = &asked.head.headers;
    match headers.get(&SESSION).map(|id| id.to_str().unwrap_or_default()) {
        Some(id) => caller.session = Some(own(mount, &caller, id).await?),
        // The later era has no sessions; a greeting of the earlier one begins one, whatever its headers say.
        None if headers.get(&VERSION).is_none_or(|version| version != STATELESS)
            && !mount.has_room().await =>
        {
            return Err(Problem::new(Kind::Unavailable, "Too many MCP sessions."));
        }
        None => {}
    }
    let body = body::read(asked.body, &asked.app.options.limits, asked.watched).await?;
    if mount.plain == Plain::Direct
        && asked.head.method == Method::POST
        && let Some(answer) = direct::answer(&mount.shared, headers, &caller, &body).await
    {
        return answer;
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = asked.head.method.clone();
    *request.uri_mut() = asked.head.uri.clone();
    *request.headers_mut() = headers.clone();
    request.extensions_mut().insert(caller.clone());
    let response = (mount.handle)(request).await;
    if let Some(name) = &caller.session {
        match response.status() {
            StatusCode::NOT_FOUND => mount.shared.sessions.end(name),
            status if status.is_success() => mount.shared.sessions.hear(name),
            _ => {}
        }
    }
    match &caller.session {
        None => begin(mount, &caller, &response).await?,
        Some(session) if asked.head.method == Method::DELETE && response.status().is_success() => {
            mount.shared.sessions.end(session);
            mount.shared.orchestrator.end_session(session).await?;
            // Hosts look for 200 or 204 here, not for the library's 202.
            let mut over = Response::new(Body::empty());
            *over.status_mut() = StatusCode::NO_CONTENT;
            return Ok(over);
        }
        Some(_) => {}
    }
    Ok(response.map(Body::Boxed))
}

/// The orchestrator's session of an MCP session, if it is the asker's. To others it does not exist.
async fn own(mount: &Mount, caller: &Caller, id: &str) -> Result<Arc<str>, Problem> {
    let id = name_of(id);
    let session = mount.shared.orchestrator.session(&id).await?;
    let is_own =
        session.is_some_and(|session| caller.owns(&session) && session.status == SessionStatus::Active);
    if is_own { Ok(Arc::from(id)) } else { Err(Problem::not_found("MCP session: initialize anew")) }
}

/// A handshake has made an MCP session: it is one session of the orchestrator, and its principal's.
async fn begin<B>(mount: &Mount, caller: &Caller, response: &Response<B>) -> Result<(), Problem> {
    let Some(id) = response.headers().get(&SESSION).and_then(|id| id.to_str().ok()) else { return Ok(()) };
    let new = caller.begin(Some(name_of(id)), mount.shared.mode);
    mount.shared.orchestrator.create_session(new).await?;
    mount.shared.sessions.begin(&name_of(id));
    Ok(())
}

fn name_of(id: &str) -> String {
    format!("mcp_{id}")
}
