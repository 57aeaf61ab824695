//! Takes one call from request to envelope. `entry` has the path.
//!
//! Knows nothing of HTTP, WebSocket, JSON-RPC or model providers.

mod admission;
mod approvals;
mod block;
mod builtin;
mod call_feed;
mod call_history;
mod capability_calls;
mod capacity;
pub mod clock;
mod condition;
pub mod confirm;
mod confirmation_request;
mod context;
mod deferred;
mod describe;
pub mod durations;
mod engine;
mod entry;
mod execution;
mod finish;
mod functions;
mod gate;
mod host;
mod ids;
mod in_flight;
mod invocation;
pub mod metrics;
mod model_result;
mod normalise;
pub mod observe;
mod orchestrator;
pub mod policy;
mod prepared;
mod preview;
mod recent_calls;
mod redact;
mod refusal;
mod request;
mod run;
mod runtime;
pub mod series;
pub mod session;
mod session_watch;
mod settlement;
pub mod state;
pub mod steps;
pub mod store;
pub mod stored_minute;
mod stored_toolset;
mod task_run;
mod tasks;
pub mod testing;
mod toolsets;
mod visible;

pub use approvals::PendingPage;
pub use call_history::{CallHistory, RecordSource};
pub use capacity::{Capacity, CapacityUse};
pub use context::Context;
pub use deferred::DeferredResult;
pub use describe::DESCRIBE;
pub use functions::engine;
pub use orchestrator::{Builder, Error as BuildError, Orchestrator};
pub use prepared::Error as PrepareError;
pub use request::{CallRequest, SessionRef, ToolCall};
pub use runtime::{Builder as RuntimeBuilder, Runtime, WeakRuntime};
pub use session::Turn;
pub use tasks::{TaskPage, begun_task};
pub use toolwright_capabilities as capabilities;
pub use toolwright_engine::{
    Cancel, Confinement, Engine, Host, HostError, HostFuture, Level, Limits, Options as EngineOptions,
    confinement, run_if_worker,
};
