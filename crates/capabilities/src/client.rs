//! The other end of a session, which the caller provides: a socket, a stream, a terminal.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::pin::Pin;

use serde_json::Value;

use crate::Fault;

/// How the handing over of a message ends.
pub type Delivery = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

/// What a session's client can be sent.
pub trait Client: Send + Sync + Debug {
    /// Hands a message to the connection; resolves when it has been handed over.
    fn send(&self, message: Value) -> Delivery;

    /// Shows how far a call has come, from 0 to 1. Clients that show nothing leave it out.
    fn progress(&self, fraction: f64, message: Option<&str>) {
        let _ = (fraction, message);
    }
}

/// A session that nobody listens to: messages cannot be delivered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Client for Silent {
    fn send(&self, _: Value) -> Delivery {
        Box::pin(ready(Err(Fault::new("CLOSED", "this session has no client to send to"))))
    }
}
