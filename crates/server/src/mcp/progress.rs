//! Progress of one call, on its way to the host that asked for it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolwright_orchestrator::capabilities::{CapabilityError, Client, SendFuture};

/// Steps that a slow host may be behind; more are left out.
const WAITING: usize = 64;
/// For a host to take what is left, once the call is over.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// The call's client as its handler sees it, and what tells the host.
pub(super) fn pair(peer: Peer<RoleServer>, token: ProgressToken) -> (Arc<dyn Client>, Reporter) {
    let (sender, steps) = mpsc::channel(WAITING);
    (Arc::new(Listener(sender)), Reporter { peer, token, steps, last: f64::NEG_INFINITY })
}

/// How far a call has come.
struct Step {
    fraction: f64,
    message: Option<String>,
}

#[derive(Debug)]
struct Listener(mpsc::Sender<Step>);

impl Client for Listener {
    fn send(&self, _: Value) -> SendFuture {
        Box::pin(ready(Err(CapabilityError::new("CLOSED", "an MCP host takes no messages"))))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        // Progress that cannot be shown is no loss.
        let _ = self.0.try_send(Step { fraction, message: message.map(str::to_owned) });
    }
}

/// Tells the host; progress that goes back is left out, as the protocol asks.
pub(super) struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    steps: mpsc::Receiver<Step>,
    last: f64,
}

impl Reporter {
    /// Tells each step; once the call has ended, what is left of them.
    pub async fn tell_until(mut self, mut ended: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                biased;
                Some(step) = self.steps.recv() => self.tell(step).await,
                _ = &mut ended => return,
            }
        }
    }

    async fn tell(&mut self, step: Step) {
        if step.fraction <= self.last {
            return;
        }
        self.last = step.fraction;
        let mut told = ProgressNotificationParam::new(self.token.clone(), step.fraction).with_total(1.0);
        told.message = step.message;
        // A host that has gone away is noticed elsewhere.
        let _ = self.peer.notify_progress(told).await;
    }
}
