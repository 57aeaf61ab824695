//! Progress of one call, sent to the host that asked for it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolwright_orchestrator::capabilities::{CapabilityError, Client, SendFuture};

/// Steps that may be queued for a slow host; further ones are dropped.
const QUEUE_CAPACITY: usize = 64;
/// How long a host may take to read queued progress once the call has ended.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// The call's client, as its handler sees it, and the reporter that notifies the host.
pub(super) fn channel(peer: Peer<RoleServer>, token: ProgressToken) -> (Arc<dyn Client>, ProgressReporter) {
    let (sender, steps) = mpsc::channel(QUEUE_CAPACITY);
    (Arc::new(ProgressClient(sender)), ProgressReporter { peer, token, steps, last: f64::NEG_INFINITY })
}

struct ProgressStep {
    fraction: f64,
    message: Option<String>,
}

#[derive(Debug)]
struct ProgressClient(mpsc::Sender<ProgressStep>);

impl Client for ProgressClient {
    fn send(&self, _: Value) -> SendFuture {
        Box::pin(ready(Err(CapabilityError::new("CLOSED", "MCP hosts do not receive messages"))))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        // Progress may be lost.
        let _ = self.0.try_send(ProgressStep { fraction, message: message.map(str::to_owned) });
    }
}

/// Notifies the host. The protocol requires progress to increase, so steps back are dropped.
pub(super) struct ProgressReporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    steps: mpsc::Receiver<ProgressStep>,
    last: f64,
}

impl ProgressReporter {
    /// Reports steps until the call has finished and the queue is empty.
    pub async fn report_until(mut self, mut finished: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                biased;
                Some(step) = self.steps.recv() => self.report(step).await,
                _ = &mut finished => return,
            }
        }
    }

    async fn report(&mut self, step: ProgressStep) {
        if step.fraction <= self.last {
            return;
        }
        self.last = step.fraction;
        let mut progress = ProgressNotificationParam::new(self.token.clone(), step.fraction).with_total(1.0);
        progress.message = step.message;
        // The transport notices a host that is gone.
        let _ = self.peer.notify_progress(progress).await;
    }
}
