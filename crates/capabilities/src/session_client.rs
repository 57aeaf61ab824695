//! The client of a session: a socket, a stream or a terminal that the server or cli provides.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::pin::Pin;

use serde_json::Value;

use crate::{CapabilityError, Result};

/// Resolves when a message has been handed to the connection, or could not be.
pub type SendFuture = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Receives the messages and progress reports of a session's calls.
pub trait Client: Send + Sync + Debug {
    /// Hands a message to the connection.
    fn send(&self, message: Value) -> SendFuture;

    /// Reports the progress of a call, from 0 to 1. The default ignores it.
    fn progress(&self, fraction: f64, message: Option<&str>) {
        let _ = (fraction, message);
    }
}

/// The client of a session without a connection: every message fails with `CLOSED`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClient;

impl Client for NoClient {
    fn send(&self, _: Value) -> SendFuture {
        Box::pin(ready(Err(CapabilityError::new("CLOSED", "this session has no connected client"))))
    }
}
