//! Takes one call from request to envelope. `entry` has the path.
//!
//! Knows nothing of HTTP, WebSocket, JSON-RPC or model providers.

mod admission;
mod argument_edits;
mod block;
mod builtin;
mod call_feed;
mod call_history;
mod capability_calls;
mod capacity;
pub mod clock;
mod condition;
mod confirmation_answer;
mod confirmation_request;
pub mod confirmation_token;
mod context;
mod deferred_results;
mod describe;
pub mod durations;
mod engine;
mod engine_functions;
mod entry;
mod execution;
mod finish;
mod gate;
mod handler_outcome;
mod host;
mod ids;
mod in_flight;
mod invocation;
mod kb_in_voice;
pub mod metrics;
mod model_result;
mod orchestrator;
pub mod policy;
mod prepared_tool;
mod preview;
mod recent_calls;
mod redaction;
mod refusal;
mod request;
mod run;
mod runtime;
pub mod series;
pub mod session;
mod session_clients;
pub mod session_state;
mod session_watch;
mod settlement;
pub mod spans;
pub mod steps;
pub mod store;
pub mod stored_minute;
mod stored_toolset;
mod task_run;
mod tasks;
pub mod testing;
mod toolsets;
mod visible_tools;

pub use call_history::{CallHistory, RecordSource};
pub use capacity::{Capacity, CapacityUse};
pub use confirmation_answer::PendingPage;
pub use context::Context;
pub use deferred_results::DeferredResult;
pub use describe::DESCRIBE;
pub use engine_functions::engine;
pub use finish::CALL_LOG;
pub use gate::meters::MeterUse;
pub use orchestrator::{Builder, Error as BuildError, Orchestrator};
pub use prepared_tool::Error as PrepareError;
pub use request::{CallRequest, SessionRef, ToolCall};
pub use runtime::{Builder as RuntimeBuilder, Runtime, WeakRuntime};
pub use session::Turn;
pub use tasks::{TaskPage, begun_task};
pub use toolwright_capabilities as capabilities;
pub use toolwright_engine::{
    Cancel, Confinement, Engine, Host, HostError, HostFuture, Level, Limits, Options as EngineOptions,
    confinement, run_if_worker,
};
