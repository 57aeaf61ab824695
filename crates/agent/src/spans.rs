//! Spans of turns and of requests to the model. Tool spans are children of the turn's span.

use std::time::Duration;

use toolwright_orchestrator::spans::Span;

use crate::event::{FinishReason, Usage};
use crate::model::ModelErrorKind;

/// A run of a turn that has ended or pauses: `invoke_agent` in OpenTelemetry's conventions for generative AI.
#[derive(Debug, Clone, Copy)]
pub struct FinishedTurn<'a> {
    pub span: Span,
    pub session: &'a str,
    pub turn: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
    /// As [`crate::TurnOutcome::as_str`]; `unrecorded` when the log could not be written.
    pub outcome: &'a str,
    pub usage: Usage,
    pub elapsed: Duration,
}

/// A finished request to the model: `chat` in OpenTelemetry's conventions for generative AI.
#[derive(Debug, Clone, Copy)]
pub struct FinishedRequest<'a> {
    pub span: Span,
    pub session: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
    pub finish: FinishReason,
    pub usage: Option<Usage>,
    pub error: Option<ModelErrorKind>,
    pub time_to_first_token: Option<Duration>,
    pub elapsed: Duration,
}

/// Receives finished turns and requests, on the thread that ends them: must not block.
pub trait AgentObserver: Send + Sync + std::fmt::Debug {
    fn turn_finished(&self, turn: &FinishedTurn<'_>);
    fn request_finished(&self, request: &FinishedRequest<'_>);
}
