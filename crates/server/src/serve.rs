//! Listens, accepts, and stops in good order: what runs is finished, what was relaxed is flushed.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::ServerHandler;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::Backend;

use crate::access::{self, Log};
use crate::app::App;
use crate::auth::Auth;
use crate::counters::Counters;
use crate::deadline::Deadlines;
use crate::exchange::exchange;
use crate::mcp::{Handler, Mount, Plain};
use crate::options::Options;
use crate::origin::Origins;
use crate::problem::{Kind, Problem};
use crate::request_id::{self, RequestIds};

/// How often sessions and questions are looked at that may have expired.
const SWEEP: Duration = Duration::from_secs(5);
/// After a failure to accept (no descriptors left), before the next try.
const BREATH: Duration = Duration::from_millis(100);
/// Hyper's own limits on a request's head; ours are lower, and answered with more words.
const HEAD_BYTES: usize = 64 << 10;
/// Hyper makes room for so many with every request: not more than it takes to answer with words.
const HEAD_COUNT: usize = 128;

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    #[error("{0} is reachable from other machines, and there is no key and no JWT issuer")]
    Unprotected(SocketAddr),
}

impl Error {
    /// A way out, for the person at the terminal.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Listen(..) => "another program may be using the port: choose one with `--listen ADDR:PORT`",
            Self::Unprotected(_) => {
                "make a key with `toolwright keys create NAME`, set `[server.jwt]`, or listen on 127.0.0.1"
            }
        }
    }
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("options", &self.app.options).finish_non_exhaustive()
    }
}

impl Server {
    /// Begins to listen. An address that others can reach is refused unless they have to say who they are.
    pub async fn bind(orchestrator: Orchestrator, auth: Auth, options: Options) -> Result<Self, Error> {
        Self::bind_as(orchestrator, auth, options, |handler| handler, Plain::Direct).await
    }

    /// As [`Self::bind`], with an MCP handler around that of the toolset, for a program that answers more than its tools
    /// can.
    pub async fn bind_with<S: ServerHandler>(
        orchestrator: Orchestrator,
        auth: Auth,
        options: Options,
        wrap: impl Fn(Handler) -> S + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::bind_as(orchestrator, auth, options, wrap, Plain::Wrapped).await
    }

    async fn bind_as<S: ServerHandler>(
        orchestrator: Orchestrator,
        auth: Auth,
        options: Options,
        wrap: impl Fn(Handler) -> S + Send + Sync + 'static,
        plain: Plain,
    ) -> Result<Self, Error> {
        let address = options.listen;
        let mut auth = auth;
        match address.ip().is_loopback() {
            true => auth.open_to_this_machine(),
            false if auth.is_open() => return Err(Error::Unprotected(address)),
            false => {}
        }
        let listener = TcpListener::bind(address).await.map_err(|error| Error::Listen(address, error))?;
        let (stop, stopped) = watch::channel(false);
        let mcp =
            Mount::new(orchestrator.clone(), options.prompts.clone(), options.limits.body_bytes, wrap, plain);
        let app = App {
            orchestrator,
            mcp,
            auth,
            origins: Origins::new(&options.cors_origins, address.ip()),
            counters: Counters::default(),
            deadlines: Deadlines::new(&options.limits),
            ids: RequestIds::new(),
            log: Log::new(options.access_log),
            is_stopping: false.into(),
            stop: stopped,
            options,
        };
        Ok(Self { listener, app: Arc::new(app), stop })
    }

    /// Where it listens: the port, if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.app.options.listen)
    }

    /// Serves until `stop` resolves, then finishes what runs. True when everything was finished in time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> bool {
        let Self { listener, app, stop: told } = self;
        let keeper = tokio::spawn(keep_house(Arc::clone(&app)));
        let watcher = Arc::clone(&app);
        let watcher = tokio::spawn(async move { watcher.deadlines.keep().await });
        let connections = app.options.limits.connections;
        let room = Arc::new(Semaphore::new(connections));
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&listener, &room) => accepted,
            };
            if let Some((stream, peer, place)) = accepted {
                tokio::spawn(connection(Arc::clone(&app), stream, peer, place));
            }
        }
        drop(listener);
        app.is_stopping.store(true, Ordering::Release);
        app.deadlines.wake_all();
        told.send_replace(true);
        let finished = finish(&app, &room, connections).await;
        keeper.abort();
        watcher.abort();
        app.log.flush();
        finished
    }
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, place)),
        Err(error) => {
            tracing::warn!("a connection could not be accepted: {error}");
            tokio::time::sleep(BREATH).await;
            None
        }
    }
}

/// Waits for connections and for detached calls, then for the disk.
async fn finish(app: &App, room: &Semaphore, connections: usize) -> bool {
    let deadline = Instant::now() + app.options.shutdown;
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    app.mcp.close(deadline).await;
    let are_closed = tokio::time::timeout_at(deadline.into(), room.acquire_many(all)).await.is_ok();
    let is_at_rest =
        app.orchestrator.wait_until_idle(deadline.saturating_duration_since(Instant::now())).await;
    let is_flushed = app.orchestrator.store().flush().await;
    if let Err(error) = &is_flushed {
        tracing::error!("{error}");
    }
    are_closed && is_at_rest && is_flushed.is_ok()
}

/// Approved calls that were left over: by a process that is gone, or by a store that could not be reached.
async fn resume(app: &App) {
    match app.orchestrator.resume().await {
        Ok(0) => {}
        Ok(count) => tracing::info!("{count} approved calls were taken up again"),
        Err(error) => tracing::error!("approved calls could not be taken up again: {error}"),
    }
}

/// What nobody asks for: approved calls that were left over, expiry, the access log.
async fn keep_house(app: Arc<App>) {
    let (mut sweep, mut flush) = (tokio::time::interval(SWEEP), tokio::time::interval(access::EVERY));
    loop {
        tokio::select! {
            _ = flush.tick() => app.log.flush(),
            _ = sweep.tick() => {
                resume(&app).await;
                if let Err(error) = app.orchestrator.sweep().await {
                    tracing::error!("{error}");
                }
            }
        }
    }
}

async fn connection(app: Arc<App>, stream: TcpStream, peer: SocketAddr, _place: OwnedSemaphorePermit) {
    let _counted = Counters::begin(&app.counters.connections);
    let _ = stream.set_nodelay(true);
    let watched = app.deadlines.watch();
    let peer = peer.to_string();
    let service = service_fn(|request| {
        let (app, watched, peer) = (&app, &watched, peer.as_str());
        async move { Ok::<_, Infallible>(exchange(app, peer, watched, request).await) }
    });
    let mut builder = http1::Builder::new();
    let headers = HEAD_COUNT.max(app.options.limits.headers + 1);
    builder.max_header_size(HEAD_BYTES).max_headers(headers);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut is_told = false;
    let is_late = poll_fn(|context| {
        watched.register(context.waker());
        loop {
            if Pin::new(&mut connection).poll(context).is_ready() {
                return Poll::Ready(false);
            }
            if is_told || !app.is_stopping.load(Ordering::Acquire) {
                return if watched.is_late() { Poll::Ready(true) } else { Poll::Pending };
            }
            is_told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
    })
    .await;
    if is_late {
        let parts = connection.into_parts();
        // Whoever has begun a request is told; an idle connection is just closed.
        if !parts.read_buf.is_empty() {
            let _ = tokio::time::timeout(BREATH, refuse_slow(&app, parts.io.into_inner())).await;
        }
    }
}

/// The answer to a request whose head never came to an end.
async fn refuse_slow(app: &App, mut stream: TcpStream) -> std::io::Result<()> {
    let seconds = app.options.limits.header_timeout.as_secs();
    let problem = Problem::new(Kind::SlowRequest, format!("The head took longer than {seconds} s."));
    let id = app.ids.of(&hyper::HeaderMap::new());
    let mut response = problem.response(&id);
    response.headers_mut().insert(&request_id::HEADER, id);
    app.counters.count(response.status().as_u16());
    let mut text = b"HTTP/1.1 408 Request Timeout\r\n".to_vec();
    for (name, value) in response.headers() {
        text.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    if let crate::body::Body::Whole(Some(body)) = response.into_body() {
        text.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        text.extend_from_slice(&body);
    }
    stream.write_all(&text).await?;
    stream.shutdown().await
}
