//! Why a call has no result: one variant for each cause, so that callers never have to parse a message.
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The failure of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Failure {
    /// The handler threw or rejected. The texts are the handler's own.
    Thrown {
        tool_error: Option<Box<ToolErrorFields>>,
        name: String,
        message: String,
        stack: String,
    },
    CpuTime,
    Deadline,
    Memory,
    Stack,
    OutputTooLarge,
    TooManyHostCalls,
    Cancelled,
    /// The promise is pending, and no job, timer or host call is left that could settle it.
    NeverSettles,
    /// The result is not JSON: a cycle, a BigInt, a function, too deep.
    BadResult(String),
    /// A syntax error, an import that does not exist, no `execute`.
    Load(String),
    /// The limit of concurrent calls was reached until the deadline.
    Overloaded,
    /// There is no worker process: none is configured, or it cannot be started.
    NoWorker(String),
    /// An internal error of the engine; the call may have had side effects.
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

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thrown { name, message, .. } => write!(out, "the handler threw {name}: {message}"),
            Self::CpuTime => out.write_str("the handler exceeded its CPU time limit"),
            Self::Deadline => out.write_str("the deadline has passed"),
            Self::Memory => out.write_str("the handler exceeded its memory limit"),
            Self::Stack => out.write_str("the handler recursed too deeply"),
            Self::OutputTooLarge => out.write_str("the result is too large"),
            Self::TooManyHostCalls => out.write_str("the handler made too many host calls"),
            Self::Cancelled => out.write_str("the call was cancelled"),
            Self::NeverSettles => out.write_str("the handler's promise can never settle"),
            Self::BadResult(why) => write!(out, "the result is not JSON: {why}"),
            Self::Load(why) => write!(out, "the handler could not be loaded: {why}"),
            Self::NoWorker(why) => write!(out, "no worker process: {why}"),
            Self::Overloaded => out.write_str("too many calls are running"),
            Self::EngineLost => out.write_str("the engine failed"),
        }
    }
}

impl std::error::Error for Failure {}
