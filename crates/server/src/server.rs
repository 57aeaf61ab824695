//! Listens, accepts connections, starts the periodic jobs, and shuts down in order: running calls finish, then the
//! store is flushed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rmcp::ServerHandler;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::Backend;

use crate::access_log::AccessLogger;
use crate::app::App;
use crate::auth::Auth;
use crate::connection::serve_connection;
use crate::connection_table::ConnectionTable;
use crate::console::audit_check::AuditCheck;
use crate::counters::Counters;
use crate::log_buffer;
use crate::maintenance::maintain;
use crate::mcp::{Handler, McpService, PlainCalls};
use crate::open_streams::OpenStreams;
use crate::options::Options;
use crate::origin::Origins;
use crate::request_id::RequestIds;
use crate::running_requests::RunningRequests;
use crate::write_test::WriteTest;

/// How often open WebSockets are counted while the server stops.
const SOCKET_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How many connections may wait to be accepted. A client that finds no place among them tries again after a second.
const BACKLOG: u32 = 1024;
/// The pause after a failed `accept`, for example when no file descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    #[error("{0} is reachable from other machines, and there is no key and no JWT issuer")]
    Unprotected(SocketAddr),
}

impl Error {
    /// How to fix it, for the person at the terminal.
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
    shutdown: watch::Sender<bool>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("options", &self.app.options).finish_non_exhaustive()
    }
}

impl Server {
    /// Begins to listen. An address that other machines can reach is refused unless callers have to authenticate.
    /// The futures of the server are boxed, so that their code is compiled here, and not in the crate that awaits them.
    pub fn bind(
        orchestrator: Orchestrator,
        auth: Auth,
        options: Options,
    ) -> BoxFuture<'static, Result<Self, Error>> {
        Box::pin(Self::bind_as(orchestrator, auth, options, |handler| handler, PlainCalls::Direct))
    }

    /// As [`Self::bind`], with an MCP handler that wraps the toolset's, for a program that offers more than its tools.
    pub async fn bind_with<S: ServerHandler>(
        orchestrator: Orchestrator,
        auth: Auth,
        options: Options,
        wrap: impl Fn(Handler) -> S + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::bind_as(orchestrator, auth, options, wrap, PlainCalls::Library).await
    }

    async fn bind_as<S: ServerHandler>(
        orchestrator: Orchestrator,
        mut auth: Auth,
        options: Options,
        wrap: impl Fn(Handler) -> S + Send + Sync + 'static,
        plain_calls: PlainCalls,
    ) -> Result<Self, Error> {
        let address = options.listen;
        match address.ip().is_loopback() {
            true => auth.allow_anonymous_local(),
            false if auth.is_open() => return Err(Error::Unprotected(address)),
            false => {}
        }
        let listener = listen(address).map_err(|error| Error::Listen(address, error))?;
        auth.fetch_ahead();
        let (shutdown, shutdown_requested) = watch::channel(false);
        let app = App {
            mcp: McpService::new(orchestrator.clone(), &options, wrap, plain_calls),
            orchestrator,
            auth,
            origins: Origins::new(&options.cors_origins, address.ip()),
            counters: Counters::default(),
            request_ids: RequestIds::new(),
            access_log: AccessLogger::new(options.access_log, Arc::clone(&options.log)),
            write_test: WriteTest::default(),
            audit_check: AuditCheck::default(),
            streams: Arc::<OpenStreams>::default(),
            running_requests: RunningRequests::default(),
            voice_sockets: Arc::new(()),
            shutdown: shutdown_requested,
            options,
        };
        Ok(Self { listener, app: Arc::new(app), shutdown })
    }

    /// The address that it listens on, with the real port where port 0 was given.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.app.options.listen)
    }

    /// Serves until `stop` resolves, then finishes running requests. True when all of them finished in time.
    pub fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, bool> {
        self.run_until(Box::pin(stop))
    }

    fn run_until(self, stop: BoxFuture<'static, ()>) -> BoxFuture<'static, bool> {
        Box::pin(self.serve(stop))
    }

    async fn serve(self, mut stop: BoxFuture<'static, ()>) -> bool {
        let Self { listener, app, shutdown } = self;
        let shared = Arc::clone(&app);
        let jobs = tokio::spawn(async move {
            tokio::join!(maintain(&shared.orchestrator), flush_log(&shared), recover_turns(&shared))
        });
        let connections = ConnectionTable::new(&app.options.limits);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&listener) => accepted,
            };
            // A connection that is not admitted is closed.
            if let Some((stream, peer)) = accepted
                && let Some(admitted) = connections.admit(peer.ip())
            {
                tokio::spawn(serve_connection(Arc::clone(&app), stream, peer, admitted));
            }
        }
        drop(listener);
        app.orchestrator.stop_tasks();
        shutdown.send_replace(true);
        let finished = finish(&app, &connections).await;
        jobs.abort();
        app.options.log.flush();
        finished
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a server that has just ended do not hold its port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::warn!("could not accept a connection: {error}");
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            None
        }
    }
}

/// Waits for connections and detached calls, then flushes the store.
async fn finish(app: &App, connections: &ConnectionTable) -> bool {
    let deadline = Instant::now() + app.options.shutdown;
    app.mcp.close(deadline).await;
    close_voice(app, deadline).await;
    let are_closed = tokio::time::timeout_at(deadline.into(), connections.wait_until_empty()).await.is_ok();
    let is_idle = app.orchestrator.wait_until_idle(deadline.saturating_duration_since(Instant::now())).await;
    if let Err(error) = app.orchestrator.save_minutes(i64::MAX).await {
        tracing::error!("could not store the numbers of the last minute: {error}");
    }
    let store = app.orchestrator.store();
    if let Err(error) = store.flush().await {
        tracing::error!("could not write all changes to the store: {error}");
    }
    // The first flush reports also what could not be written earlier; the second, whether the rest is stored.
    are_closed && is_idle && store.flush().await.is_ok()
}

/// Ends the voice sessions, and waits until their clients have received `ended`.
async fn close_voice(app: &App, deadline: Instant) {
    let Some(voice) = &app.options.voice else { return };
    // Sessions that are not over by then end with the process.
    let _ = tokio::time::timeout_at(deadline.into(), voice.shut_down()).await;
    while Arc::strong_count(&app.voice_sockets) > 1 && Instant::now() < deadline {
        tokio::time::sleep(SOCKET_CHECK_INTERVAL).await;
    }
}

/// Continues the turns that the process before has left.
async fn recover_turns(app: &App) {
    let Some(agent) = &app.options.agent else { return };
    if let Err(error) = agent.recover().await {
        tracing::error!("could not look for interrupted turns: {error}");
    }
}

async fn flush_log(app: &App) {
    let mut interval = tokio::time::interval(log_buffer::FLUSH_INTERVAL);
    loop {
        interval.tick().await;
        app.options.log.flush();
    }
}
