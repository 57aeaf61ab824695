//! Why a call has no result: one variant for each cause, so that callers never have to parse a message.
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The failure of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// The handler threw or rejected. The texts are the handler's own.
    #[error("the handler threw {name}: {message}")]
    Thrown {
        tool_error: Option<Box<ToolErrorFields>>,
        /// The `code` of the error, or of its `cause`, such as that of a host function's error.
        code: Option<String>,
        name: String,
        message: String,
        /// The frames in the handler's files, each with line and column.
        stack: String,
    },
    #[error("the handler exceeded its CPU time limit")]
    CpuTime,
    #[error("the deadline has passed")]
    Deadline,
    #[error("the handler exceeded its memory limit")]
    Memory,
    #[error("the handler recursed too deeply")]
    Stack,
    #[error("the output is too large")]
    OutputTooLarge,
    #[error("the handler made too many host calls")]
    TooManyHostCalls,
    #[error("the call was cancelled")]
    Cancelled,
    /// The promise is pending, and no job, timer or host call is left that could settle it.
    #[error("the handler's promise can never settle")]
    NeverSettles,
    /// The result is not JSON: a cycle, a BigInt, a function, too deep.
    #[error("the result is not JSON: {0}")]
    BadResult(String),
    /// A syntax error, an import that does not exist, no `execute`.
    #[error("the handler could not be loaded: {0}")]
    Load(String),
    /// The limit of concurrent calls was reached until the deadline.
    #[error("too many calls are running")]
    Overloaded,
    /// There is no worker process: none is configured, or it cannot be started.
    #[error("no worker process: {0}")]
    NoWorker(String),
    /// An internal error of the engine; the call may have had side effects.
    #[error("the engine failed")]
    EngineLost,
}

/// The fields of a thrown `ToolError`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolErrorFields {
    pub type_: String,
    pub message: String,
    pub retryable: bool,
    pub partial_side_effects: bool,
    pub idempotency_required: bool,
    pub details: Option<Value>,
}
