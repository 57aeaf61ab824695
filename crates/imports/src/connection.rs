//! A connection that is made when it is first needed, and made again after it was lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use tokio::sync::Mutex;
use tokio::time::timeout;
use toolwright_contract::{ErrorKind, Failure, Success};

use crate::answer;
use crate::definition::Definition;
use crate::settings::Server;
use crate::transport::{self, Running};

/// How long the server's word for what its tools are is taken, if it does not say that they have changed.
const TRUSTED: Duration = Duration::from_secs(60);
/// Before a server that could not be reached is tried again.
const PAUSE: Duration = Duration::from_secs(2);
/// For a server to list its tools.
const LISTING: Duration = Duration::from_secs(20);

pub(crate) struct Connection {
    server: Server,
    /// How often the server has said that its tools are others now.
    changes: Arc<AtomicU64>,
    live: RwLock<Option<Live>>,
    /// Held by whoever makes the connection; when that failed last.
    making: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Live {
    running: Arc<Running>,
    /// The digests of its tools, when they were asked for, and how many changes had been told before.
    digests: Arc<BTreeMap<String, String>>,
    asked: Instant,
    changes: u64,
}

/// Why there is no connection.
enum Missing {
    Starting,
    Failed(String),
}

impl Connection {
    pub fn new(server: Server) -> Self {
        Self { server, changes: Arc::default(), live: RwLock::default(), making: Mutex::default() }
    }

    /// What the server offers now.
    pub async fn definitions(&self) -> Result<BTreeMap<String, Definition>, String> {
        let running = transport::connect(&self.server, Arc::clone(&self.changes)).await?;
        let definitions = list(&running).await;
        // The answer is here; how the connection ends does not matter.
        let _ = running.cancel().await;
        definitions
    }

    /// Calls a tool if its definition is still the one with this digest.
    pub async fn call(
        self: &Arc<Self>,
        tool: &str,
        digest: &str,
        args: JsonObject,
        deadline: Instant,
    ) -> Result<Success, Failure> {
        let writes = self.server.writes(tool);
        let live = self.live(deadline).await.map_err(|missing| self.missing(missing))?;
        self.verify(&live, tool, digest)?;
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        match live.running.call_tool_once(call).await {
            Ok(CallToolResponse::Complete(result)) => answer::outcome(result, writes),
            Ok(_) => Err(Failure::new(
                ErrorKind::Permanent,
                "The server asks for more than the arguments; that is not supported.",
            )),
            Err(error) => {
                tracing::warn!(server = self.server.name, tool, "the call failed: {error}");
                Err(answer::failure(&error, writes))
            }
        }
    }

    /// Waits until the server can be called. The text of an error is for the operator.
    pub async fn ready(self: &Arc<Self>) -> Result<(), String> {
        self.made().await.map(drop)
    }

    fn missing(&self, missing: Missing) -> Failure {
        let message = match missing {
            Missing::Starting => "The server of this tool is still starting.",
            Missing::Failed(error) => {
                tracing::error!(server = self.server.name, "the MCP server cannot be used: {error}");
                "The server of this tool cannot be reached."
            }
        };
        let failure = Failure { retryable: true, ..Failure::new(ErrorKind::Transient, message) };
        failure.suggest("Try again in a moment, or go on without it.")
    }

    fn verify(&self, live: &Live, tool: &str, digest: &str) -> Result<(), Failure> {
        let server = &self.server.name;
        let refused = |what: &str| {
            tracing::error!(
                server,
                tool,
                "{what}; look at it, and accept it with `toolwright mcp pin {server}`"
            );
            Failure::new(
                ErrorKind::Permanent,
                "The tool is not what was accepted any more, so it is not called.",
            )
            .suggest("Tell the user that an administrator has to accept the tool again.")
        };
        match live.digests.get(tool) {
            Some(present) if present == digest => Ok(()),
            Some(_) => Err(refused("its definition has changed since it was pinned")),
            None => Err(refused("the server does not offer it any more")),
        }
    }

    /// A connection whose tools are known. One that has to be made is made by a task of its own: a server that starts
    /// slowly is there for a later call, however short the time of each is.
    async fn live(self: &Arc<Self>, deadline: Instant) -> Result<Live, Missing> {
        if let Some(live) = self.fresh() {
            return Ok(live);
        }
        let connection = Arc::clone(self);
        let making = tokio::spawn(async move { connection.made().await });
        // The rest of the time is for the answer.
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(left.mul_f64(0.9), making).await {
            Ok(Ok(made)) => made.map_err(Missing::Failed),
            Ok(Err(error)) => Err(Missing::Failed(error.to_string())),
            Err(_) => Err(Missing::Starting),
        }
    }

    /// What is connected, if its tools need not be asked for.
    fn fresh(&self) -> Option<Live> {
        let live = self.present()?;
        let is_trusted =
            live.asked.elapsed() < TRUSTED && live.changes == self.changes.load(Ordering::Acquire);
        is_trusted.then_some(live)
    }

    fn present(&self) -> Option<Live> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner).clone();
        live.filter(|live| !live.running.is_transport_closed())
    }

    /// Makes the connection, or asks a living one for its tools again.
    async fn made(&self) -> Result<Live, String> {
        let mut failed = self.making.lock().await;
        // Another may have been quicker.
        if let Some(live) = self.fresh() {
            return Ok(live);
        }
        let asked = match self.present() {
            Some(live) => self.ask(live.running).await.ok(),
            None => None,
        };
        let made = match asked {
            Some(live) => Ok(live),
            None if failed.is_some_and(|failed| failed.elapsed() < PAUSE) => {
                return Err("it could not be reached a moment ago".to_owned());
            }
            None => match transport::connect(&self.server, Arc::clone(&self.changes)).await {
                Ok(running) => self.ask(Arc::new(running)).await,
                Err(error) => Err(error),
            },
        };
        *failed = made.is_err().then(Instant::now);
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = made.as_ref().ok().cloned();
        made
    }

    async fn ask(&self, running: Arc<Running>) -> Result<Live, String> {
        // Counted before the question: a change that is told while it is answered counts as a later one.
        let (changes, asked) = (self.changes.load(Ordering::Acquire), Instant::now());
        let definitions = list(&running).await?;
        let digests = definitions.into_iter().map(|(tool, definition)| (tool, definition.digest()));
        Ok(Live { digests: Arc::new(digests.collect()), running, asked, changes })
    }
}

async fn list(running: &Running) -> Result<BTreeMap<String, Definition>, String> {
    let tools = match timeout(LISTING, running.list_all_tools()).await {
        Ok(listed) => listed.map_err(|error| format!("it does not list its tools: {error}"))?,
        Err(_) => return Err(format!("it does not list its tools within {} s", LISTING.as_secs())),
    };
    Ok(tools.iter().map(|tool| (tool.name.to_string(), Definition::of(tool))).collect())
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
