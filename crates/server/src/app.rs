//! What all requests share.

use std::sync::atomic::AtomicBool;

use tokio::sync::watch;
use toolwright_orchestrator::Orchestrator;

use crate::access::Log;
use crate::auth::Auth;
use crate::counters::Counters;
use crate::deadline::Deadlines;
use crate::mcp::Mount;
use crate::options::Options;
use crate::origin::Origins;
use crate::request_id::RequestIds;

pub(crate) struct App {
    pub orchestrator: Orchestrator,
    pub auth: Auth,
    pub options: Options,
    pub origins: Origins,
    pub counters: Counters,
    pub deadlines: Deadlines,
    pub ids: RequestIds,
    pub log: Log,
    pub mcp: Mount,
    /// No new work is wanted.
    pub is_stopping: AtomicBool,
    /// Turns true when the server is told to stop, for those who wait for something else.
    pub stop: watch::Receiver<bool>,
}

impl App {
    /// Resolves when the server is told to stop.
    pub async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // An error means that the server is gone, which is the same.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}
