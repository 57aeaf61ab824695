//! The state that all requests of a server share.

use std::sync::Arc;

use tokio::sync::watch;
use toolwright_orchestrator::Orchestrator;

use crate::access_log::AccessLogger;
use crate::auth::Auth;
use crate::console::audit_check::AuditCheck;
use crate::counters::Counters;
use crate::mcp::McpService;
use crate::open_streams::OpenStreams;
use crate::options::Options;
use crate::origin::Origins;
use crate::request_id::RequestIds;
use crate::running_requests::RunningRequests;
use crate::write_test::WriteTest;

pub(crate) struct App {
    pub orchestrator: Orchestrator,
    pub auth: Auth,
    pub options: Options,
    pub origins: Origins,
    pub counters: Counters,
    pub request_ids: RequestIds,
    pub access_log: AccessLogger,
    pub mcp: McpService,
    pub write_test: WriteTest,
    pub audit_check: AuditCheck,
    pub streams: Arc<OpenStreams>,
    pub running_requests: RunningRequests,
    /// Has one reference per open voice WebSocket.
    pub voice_sockets: Arc<()>,
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
