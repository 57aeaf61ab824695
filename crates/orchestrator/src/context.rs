//! What a native handler sees: the same `context` as a JavaScript one, as a Rust type.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolwright_contract::{Envelope, Mode, ToolSpec};
use toolwright_engine::{Host, HostError};

use crate::call::Call;
use crate::guard::{self, Guard};

/// The surroundings of one call. Cloning shares it.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Call>);

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, id) = (&self.tool().tool_id, self.execution_id());
        formatter
            .debug_struct("Context")
            .field("tool", tool)
            .field("execution_id", &id)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub fn client_id(&self) -> &str {
        self.0.caller.client_id()
    }

    pub fn mode(&self) -> Mode {
        self.0.caller.mode()
    }

    /// The id of this call, the same when it is replayed.
    pub fn execution_id(&self) -> &str {
        &self.0.execution_id
    }

    pub fn tool(&self) -> &ToolSpec {
        self.0.spec()
    }

    /// The session's state when the call came.
    pub fn state(&self) -> &Value {
        self.0.caller.state()
    }

    /// False in a session that has ended.
    pub fn is_active(&self) -> bool {
        self.0.caller.is_active()
    }

    /// The version of the toolset that the session keeps.
    pub fn tools_version(&self) -> &str {
        &self.0.runtime.toolset().version
    }

    /// When the call will be given up.
    pub fn deadline(&self) -> Instant {
        self.0.deadline
    }

    /// True once the call has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.get().is_some_and(toolwright_engine::Cancel::is_cancelled)
    }

    /// Asks for a capability by its dotted name, as docs/reference/capabilities.md lists them.
    pub async fn call(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        Guard(Arc::clone(&self.0)).call(path, args).await
    }

    /// Delivers a message to the client of this session.
    pub async fn send(&self, message: Value) -> Result<(), HostError> {
        self.call("messaging.send", vec![message]).await.map(drop)
    }

    /// Adds an entry to the call's audit record.
    pub fn audit(&self, event: &str, data: Value) {
        // Fire and forget, as for all handlers.
        let _ = Guard(Arc::clone(&self.0)).call_sync("audit.log", vec![event.into(), data]);
    }

    /// Says how far the call has come, from 0 to 1.
    pub fn progress(&self, fraction: f64, message: Option<&str>) {
        let _ = Guard(Arc::clone(&self.0)).call_sync("progress", vec![json!(fraction), json!(message)]);
    }

    /// Runs another tool through the same gates as a call by the model.
    pub async fn call_tool(&self, name: &str, args: Value) -> Result<Envelope, HostError> {
        guard::call_tool(&self.0, name, args).await
    }

    /// Asks for a state change; it takes effect only if the call succeeds and the session allows it.
    pub fn intend(&self, intent: Value) {
        self.0.asked().intents.push(intent);
    }
}
