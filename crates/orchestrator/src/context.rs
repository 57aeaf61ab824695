//! The `context` of a native handler: the same as that of a JavaScript handler, as a Rust type.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolwright_contract::{Envelope, Mode, ToolSpec};
use toolwright_engine::{Host, HostError};

use crate::host::{self, CallHost};
use crate::invocation::Invocation;

/// The context of one call. Cloning shares it.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Invocation>);

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
        &self.0.session.client_id
    }

    pub fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// The id of this call, the same when it is replayed. Calls of other sessions may have the same id.
    pub fn execution_id(&self) -> &str {
        &self.0.execution_id
    }

    /// Names this call to other services: the same when it is made again, and no other call has it, in any session.
    pub fn idempotency_key(&self) -> String {
        self.0.idempotency_key()
    }

    pub fn tool(&self) -> &ToolSpec {
        self.0.spec()
    }

    /// The session's state when the call started.
    pub fn state(&self) -> &Value {
        &self.0.session.state
    }

    /// False when a test runs in a session that has ended.
    pub fn is_active(&self) -> bool {
        self.0.is_active()
    }

    /// The version of the session's toolset.
    pub fn tools_version(&self) -> &str {
        &self.0.runtime.toolset().version
    }

    pub fn deadline(&self) -> Instant {
        self.0.deadline
    }

    /// True once the call has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.get().is_some_and(toolwright_engine::Cancel::is_cancelled)
    }

    /// Calls a capability by its dotted name; docs/reference/capabilities.md lists them.
    pub async fn call(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        CallHost(Arc::clone(&self.0)).call(path, args).await
    }

    /// Sends a message to the client of this session.
    pub async fn send(&self, message: Value) -> Result<(), HostError> {
        self.call("messaging.send", vec![message]).await.map(drop)
    }

    /// Adds an entry to the audit log.
    pub fn audit(&self, event: &str, data: Value) {
        // Handlers cannot handle a failing audit log.
        let _ = CallHost(Arc::clone(&self.0)).call_sync("audit.log", vec![event.into(), data]);
    }

    /// Reports the progress of the call, from 0 to 1.
    pub fn progress(&self, fraction: f64, message: Option<&str>) {
        let _ = CallHost(Arc::clone(&self.0)).call_sync("progress", vec![json!(fraction), json!(message)]);
    }

    /// Runs another tool through the same gates as a call by the model.
    pub async fn call_tool(&self, name: &str, args: Value) -> Result<Arc<Envelope>, HostError> {
        host::call_tool(&self.0, name, args).await
    }

    /// Adds an intent; it is applied only if the call succeeds and the session's state allows it.
    pub fn intend(&self, intent: Value) {
        self.0.effects().intents.push(intent);
    }
}
