//! The connection to one server: opened at the first call, and again after it was lost. It verifies the digest of a
//! tool's definition before each call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use tokio::sync::Mutex;
use tokio::time::timeout;
use toolwright_contract::{ErrorKind, Failure, Success};

use crate::call_result::{convert_error, convert_result};
use crate::definition::Definition;
use crate::listing::list_tools;
use crate::settings::{EnvironmentLookup, ServerSettings};
use crate::transport::{self, McpClient};

/// How long listed definitions are cached, unless the server reports a change.
const DEFINITIONS_TTL: Duration = Duration::from_secs(60);
/// The minimum time between two attempts to connect.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    pub server: ServerSettings,
    environment: EnvironmentLookup,
    /// Counts the server's `tools/list_changed` notifications.
    list_changes: Arc<AtomicU64>,
    open: RwLock<Option<OpenConnection>>,
    /// Held while connecting; the time of the last failure.
    last_failure: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct OpenConnection {
    client: Arc<McpClient>,
    /// The digests of the server's tools, by name.
    digests: Arc<BTreeMap<String, String>>,
    listed_at: Instant,
    /// The value of `list_changes` before the tools were listed.
    list_changes: u64,
}

/// Why there is no connection.
enum ConnectError {
    StillStarting,
    Failed(String),
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("server", &self.server.name).finish_non_exhaustive()
    }
}

impl Connection {
    pub fn new(server: ServerSettings, environment: EnvironmentLookup) -> Self {
        Self {
            server,
            environment,
            list_changes: Arc::default(),
            open: RwLock::default(),
            last_failure: Mutex::default(),
        }
    }

    /// Lists the server's tools over a connection of its own.
    pub async fn definitions(&self) -> Result<BTreeMap<String, Definition>, String> {
        let client = self.connect().await?;
        let definitions = list_tools(&client, &self.server).await;
        client.close().await;
        definitions
    }

    /// Calls a tool if its definition still has this digest.
    pub async fn call(
        self: &Arc<Self>,
        tool: &str,
        digest: &str,
        args: JsonObject,
        deadline: Instant,
    ) -> Result<Success, Failure> {
        let writes = self.server.is_writing(tool);
        let connection = self.get(deadline).await.map_err(|error| self.unavailable(error))?;
        self.verify(&connection, tool, digest)?;
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let client = &connection.client;
        match client.limit_exceeded.guard(client.call_tool_once(call)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => convert_result(result, writes),
            Ok(Ok(_)) => Err(Failure::new(
                ErrorKind::Permanent,
                "The server asks for more input; that is not supported.",
            )),
            Ok(Err(error)) => {
                tracing::warn!(server = self.server.name, tool, "the call failed: {error}");
                Err(convert_error(&error, writes))
            }
            Err(exceeded) => {
                tracing::error!(server = self.server.name, tool, "the call failed: {exceeded}");
                self.discard(client);
                let failure = Failure::new(ErrorKind::Permanent, format!("The call failed: {exceeded}."));
                Err(Failure { partial_side_effects: writes, ..failure })
            }
        }
    }

    /// Closes a connection, unless it was replaced already.
    fn discard(&self, client: &Arc<McpClient>) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.take_if(|open| Arc::ptr_eq(&open.client, client));
    }

    fn unavailable(&self, error: ConnectError) -> Failure {
        let message = match error {
            ConnectError::StillStarting => "The server of this tool is still starting.",
            ConnectError::Failed(error) => {
                tracing::error!(server = self.server.name, "could not connect to the MCP server: {error}");
                "The server of this tool is not reachable."
            }
        };
        let failure = Failure { retryable: true, ..Failure::new(ErrorKind::Transient, message) };
        failure.suggest("Try again in a moment, or continue without it.")
    }

    fn verify(&self, connection: &OpenConnection, tool: &str, digest: &str) -> Result<(), Failure> {
        let server = &self.server.name;
        let cause = match connection.digests.get(tool) {
            Some(current) if current == digest => return Ok(()),
            Some(_) => "the definition of the tool has changed since it was pinned",
            None => "the server no longer offers the tool",
        };
        tracing::error!(server, tool, "{cause}; review it, and accept it with `toolwright mcp pin {server}`");
        let message = "The definition of this tool differs from the accepted one, so it is not called.";
        Err(Failure::new(ErrorKind::Permanent, message)
            .suggest("Tell the user that an administrator has to accept the tool again."))
    }

    /// An open connection with current digests. Connecting runs in its own task, so that a server that starts slowly is
    /// ready for a later call, however short the deadline of each call is.
    async fn get(self: &Arc<Self>, deadline: Instant) -> Result<OpenConnection, ConnectError> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let this = Arc::clone(self);
        let connecting = tokio::spawn(async move { this.connect_or_refresh().await });
        // The rest of the time is for reporting the failure.
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(left.mul_f64(0.9), connecting).await {
            Ok(Ok(connected)) => connected.map_err(ConnectError::Failed),
            Ok(Err(error)) => Err(ConnectError::Failed(error.to_string())),
            Err(_) => Err(ConnectError::StillStarting),
        }
    }

    /// The open connection, if its digests are current.
    fn current(&self) -> Option<OpenConnection> {
        self.open_connection().filter(|connection| {
            connection.listed_at.elapsed() < DEFINITIONS_TTL
                && connection.list_changes == self.list_changes.load(Ordering::Acquire)
        })
    }

    fn open_connection(&self) -> Option<OpenConnection> {
        let connection = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        connection.filter(|OpenConnection { client, .. }| {
            !client.is_transport_closed() && client.limit_exceeded.get().is_none()
        })
    }

    /// Waits until the server can be called. The error is for the operator.
    pub async fn wait_until_ready(&self) -> Result<(), String> {
        self.connect_or_refresh().await.map(drop)
    }

    /// Refreshes the digests of an open connection, or connects.
    async fn connect_or_refresh(&self) -> Result<OpenConnection, String> {
        let mut last_failure = self.last_failure.lock().await;
        // Another task may have connected meanwhile.
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let refreshed = match self.open_connection() {
            // The HTTP transport keeps the schemas of all tools it has ever seen, so it is replaced with the tools.
            Some(OpenConnection { client, digests, .. }) => (self.load_digests(client).await.ok())
                .filter(|refreshed| self.server.url.is_none() || refreshed.digests == digests),
            None => None,
        };
        let connected = match refreshed {
            Some(connection) => Ok(connection),
            None if last_failure.is_some_and(|failure| failure.elapsed() < RECONNECT_DELAY) => {
                return Err("the last attempt to connect failed a moment ago".to_owned());
            }
            None => match self.connect().await {
                Ok(client) => self.load_digests(Arc::new(client)).await,
                Err(error) => Err(error),
            },
        };
        *last_failure = connected.is_err().then(Instant::now);
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = connected.as_ref().ok().cloned();
        connected
    }

    async fn connect(&self) -> Result<McpClient, String> {
        transport::connect(&self.server, self.environment, Arc::clone(&self.list_changes)).await
    }

    async fn load_digests(&self, client: Arc<McpClient>) -> Result<OpenConnection, String> {
        // Read before the request, so that a change during the request makes the digests outdated.
        let (list_changes, listed_at) = (self.list_changes.load(Ordering::Acquire), Instant::now());
        let definitions = list_tools(&client, &self.server).await?;
        let digests = definitions.into_iter().map(|(tool, definition)| (tool, definition.digest()));
        Ok(OpenConnection { digests: Arc::new(digests.collect()), client, listed_at, list_changes })
    }
}
