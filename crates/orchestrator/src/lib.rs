//! Takes one call from request to envelope: validates, runs the handler in its engine, normalises what comes of it.
//!
//! Knows nothing of HTTP, WebSocket, JSON-RPC or model providers.

pub mod audit;
mod backing;
mod call;
mod context;
mod engine;
mod functions;
mod guard;
mod normalise;
mod prepared;
mod request;
mod runtime;
pub mod testing;
mod validation;

pub use context::Context;
pub use prepared::Error as PrepareError;
pub use request::{Request, Session};
pub use runtime::{Builder, Runtime};
pub use toolwright_capabilities as capabilities;
pub use toolwright_engine::{Cancel, Host, HostError, HostFuture, Level, Limits, Options as EngineOptions};
