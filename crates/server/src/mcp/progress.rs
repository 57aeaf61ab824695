//! Progress of one call, sent to the MCP host that asked for it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolwright_orchestrator::capabilities::{CapabilityError, Client, SendFuture};

/// Steps that may be queued for a slow MCP host; further ones are dropped.
const QUEUE_CAPACITY: usize = 64;
/// How long an MCP host may take to read queued progress once the call has ended.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// The call's client, as its handler sees it, and the steps that [`report`] sends to the MCP host.
pub(super) fn channel() -> (Arc<dyn Client>, mpsc::Receiver<ProgressStep>) {
    let (sender, steps) = mpsc::channel(QUEUE_CAPACITY);
    (Arc::new(ProgressClient(sender)), steps)
}

pub(super) struct ProgressStep {
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

/// Notifies the MCP host until the call has finished and the queue is empty. The protocol requires progress to
/// increase, so steps back are dropped.
pub(super) async fn report(
    peer: &Peer<RoleServer>,
    token: ProgressToken,
    mut steps: mpsc::Receiver<ProgressStep>,
    mut finished: oneshot::Receiver<()>,
) {
    let mut last = f64::NEG_INFINITY;
    loop {
        let step = tokio::select! {
            biased;
            Some(step) = steps.recv() => step,
            _ = &mut finished => return,
        };
        if step.fraction > last {
            last = step.fraction;
            let mut progress = ProgressNotificationParam::new(token.clone(), last).with_total(1.0);
            progress.message = step.message;
            // The transport notices an MCP host that is gone.
            let _ = peer.notify_progress(progress).await;
        }
    }
}
