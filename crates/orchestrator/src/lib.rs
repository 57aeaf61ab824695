//! Takes one call from request to envelope: validates, runs the handler in its engine, normalises what comes of it.
//!
//! Knows nothing of HTTP, WebSocket, JSON-RPC or model providers.

mod approvals;
pub mod audit;
mod backing;
mod block;
mod builder;
mod call;
pub mod clock;
mod condition;
pub mod confirm;
mod context;
mod deliveries;
mod describe;
mod doors;
mod engine;
mod functions;
mod gate;
mod guard;
mod ids;
mod in_flight;
mod message;
pub mod metrics;
mod normalise;
pub mod observe;
mod orchestrator;
pub mod policy;
mod prepared;
mod recovery;
mod redact;
mod refusal;
mod request;
mod run;
mod runtime;
pub mod session;
mod sessions;
pub mod state;
pub mod store;
pub mod testing;
mod trip;
mod validation;

pub use builder::{Builder, Error as BuildError};
pub use context::Context;
pub use deliveries::Delivery;
pub use describe::DESCRIBE;
pub use doors::Heard;
pub use orchestrator::{Orchestrator, ToolCall};
pub use prepared::Error as PrepareError;
pub use request::{Request, Session};
pub use runtime::{Builder as RuntimeBuilder, Runtime, WeakRuntime};
pub use sessions::Turn;
pub use toolwright_capabilities as capabilities;
pub use toolwright_engine::{Cancel, Host, HostError, HostFuture, Level, Limits, Options as EngineOptions};
