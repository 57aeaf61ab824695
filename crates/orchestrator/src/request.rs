//! What a caller hands in: the call, and a snapshot of the session that it belongs to.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolwright_capabilities::{Client, Silent};
use toolwright_contract::Mode;
use toolwright_engine::Cancel;

/// One request to run a tool.
#[derive(Debug, Clone)]
pub struct Request {
    pub tool: String,
    pub args: Value,
    /// The provider's id of the call.
    pub execution_id: String,
    pub session: Arc<Session>,
    /// Turns `context.signal` and ends the call.
    pub cancel: Cancel,
    /// Where the handler's clock stands still, in milliseconds since 1970; for tests.
    pub now: Option<i64>,
}

/// The session of a call, as it was when the call came.
#[derive(Debug, Clone)]
pub struct Session {
    pub client_id: String,
    pub mode: Mode,
    pub is_active: bool,
    /// What the handler sees as `context.session.state`.
    pub state: Value,
    /// Where messages and progress go.
    pub client: Arc<dyn Client>,
}

impl Request {
    /// A call in a session, with an id of its own.
    pub fn new(tool: impl Into<String>, args: Value, session: Arc<Session>) -> Self {
        let cancel = Cancel::new();
        Self { tool: tool.into(), args, execution_id: crate::ids::fresh("call"), session, cancel, now: None }
    }
}

impl Session {
    /// An active session with an empty state that nobody listens to.
    pub fn new(client_id: impl Into<String>, mode: Mode) -> Self {
        let (client_id, state) = (client_id.into(), Value::Object(Map::new()));
        Self { client_id, mode, is_active: true, state, client: Arc::new(Silent) }
    }
}
