//! A connection that is made when it is first needed, and made again after it was lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use tokio::sync::Mutex;
use toolwright_contract::{ErrorKind, Failure, Success};

use crate::answer;
use crate::definition::Definition;
use crate::settings::Server;
use crate::transport::{self, Running};

/// How long the server's word for what its tools are is taken, if it does not say that they have changed.
const TRUSTED: Duration = Duration::from_secs(60);
/// Before a server that could not be reached is tried again.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    server: Server,
    changed: Arc<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Live>,
    failed: Option<Instant>,
}

#[derive(Clone)]
struct Live {
    running: Arc<Running>,
    /// The digests of its tools, and when they were asked for.
    digests: Arc<BTreeMap<String, String>>,
    asked: Instant,
}

impl Connection {
    pub fn new(server: Server) -> Self {
        Self { server, changed: Arc::default(), state: Mutex::default() }
    }

    /// What the server offers now.
    pub async fn definitions(&self) -> Result<BTreeMap<String, Definition>, String> {
        let running = transport::connect(&self.server, Arc::clone(&self.changed)).await?;
        let definitions = list(&running).await;
        // The answer is here; how the connection ends does not matter.
        let _ = running.cancel().await;
        definitions
    }

    /// Calls a tool if its definition is still the one with this digest.
    pub async fn call(&self, tool: &str, digest: &str, args: JsonObject) -> Result<Success, Failure> {
        let writes = self.server.writes(tool);
        let live = self.live().await.map_err(|error| {
            tracing::error!(server = self.server.name, "the MCP server cannot be used: {error}");
            let failure = Failure::new(ErrorKind::Transient, "The server of this tool cannot be reached.");
            Failure { retryable: true, ..failure }.suggest("Try again in a moment, or go on without it.")
        })?;
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

    /// A connection whose tools are known.
    async fn live(&self) -> Result<Live, String> {
        let mut state = self.state.lock().await;
        if let Some(live) = state.live.as_ref().filter(|live| !live.running.is_transport_closed()) {
            if live.asked.elapsed() < TRUSTED && !self.changed.load(Ordering::Acquire) {
                return Ok(live.clone());
            }
            let running = Arc::clone(&live.running);
            self.changed.store(false, Ordering::Release);
            if let Ok(live) = ask(running).await {
                state.live = Some(live.clone());
                return Ok(live);
            }
        }
        state.live = None;
        if state.failed.is_some_and(|failed| failed.elapsed() < PAUSE) {
            return Err("it could not be reached a moment ago".to_owned());
        }
        self.changed.store(false, Ordering::Release);
        let connected = match transport::connect(&self.server, Arc::clone(&self.changed)).await {
            Ok(running) => ask(Arc::new(running)).await,
            Err(error) => Err(error),
        };
        state.failed = connected.is_err().then(Instant::now);
        state.live = connected.as_ref().ok().cloned();
        connected
    }
}

async fn ask(running: Arc<Running>) -> Result<Live, String> {
    let digests = list(&running).await?.into_iter().map(|(tool, definition)| (tool, definition.digest()));
    Ok(Live { digests: Arc::new(digests.collect()), running, asked: Instant::now() })
}

async fn list(running: &Running) -> Result<BTreeMap<String, Definition>, String> {
    let tools =
        running.list_all_tools().await.map_err(|error| format!("it does not list its tools: {error}"))?;
    Ok(tools.iter().map(|tool| (tool.name.to_string(), Definition::of(tool))).collect())
}
