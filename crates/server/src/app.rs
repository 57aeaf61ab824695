//! The state that all requests of a server share.

use tokio::sync::watch;
use toolwright_orchestrator::Orchestrator;

use crate::access_log::AccessLogger;
use crate::auth::Auth;
use crate::counters::Counters;
use crate::mcp::McpService;
use crate::options::Options;
use crate::origin::Origins;
use crate::request_id::RequestIds;

pub(crate) struct App {
    pub orchestrator: Orchestrator,
    pub auth: Auth,
    pub options: Options,
    pub origins: Origins,
    pub counters: Counters,
    pub request_ids: RequestIds,
    pub access_log: AccessLogger,
    pub mcp: McpService,
    /// True once the server shuts down.
    pub shutdown: watch::Receiver<bool>,
}

impl App {
    pub fn is_shutting_down(&self) -> bool {
        *self.shutdown.borrow()
    }

    /// Resolves when the server begins to shut down.
    pub async fn shutdown_requested(&self) {
        let mut shutdown = self.shutdown.clone();
        // An error means that the server itself was dropped.
        let _ = shutdown.wait_for(|requested| *requested).await;
    }
}
