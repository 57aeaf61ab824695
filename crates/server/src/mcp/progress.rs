//! Progress of one call, on its way to the host that asked for it.

use std::future::ready;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::mpsc;
use toolwright_orchestrator::capabilities::{Client, Delivery, Fault};

/// Steps that a slow host may be behind; more are left out.
const WAITING: usize = 64;

/// One step.
pub(super) struct Step {
    fraction: f64,
    message: Option<String>,
}

/// The call's client, as its handler sees it.
#[derive(Debug)]
pub(super) struct Listener(mpsc::Sender<Step>);

impl Listener {
    pub fn new() -> (Self, mpsc::Receiver<Step>) {
        let (sender, steps) = mpsc::channel(WAITING);
        (Self(sender), steps)
    }
}

impl Client for Listener {
    fn send(&self, _: Value) -> Delivery {
        Box::pin(ready(Err(Fault::new("CLOSED", "an MCP host takes no messages"))))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        // Progress that cannot be shown is no loss.
        let _ = self.0.try_send(Step { fraction, message: message.map(str::to_owned) });
    }
}

/// Tells the host; progress that goes back is left out, as the protocol asks.
pub(super) struct Reporter {
    pub peer: Peer<RoleServer>,
    pub token: ProgressToken,
    last: f64,
}

impl Reporter {
    pub fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self { peer, token, last: f64::NEG_INFINITY }
    }

    pub async fn tell(&mut self, step: Step) {
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
