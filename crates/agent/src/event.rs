//! The events of a conversation. Every event is written once, to the log of its session; wires encode the log.
//!
//! # Order
//!
//! ```text
//! TurnStarted
//!   StepStarted                       one request to the model
//!     Reasoning… PartEnded            parts are numbered within the turn, and never interleaved
//!     Text… PartEnded
//!   StepFinished
//!   ToolCalled…                       all calls of the step, before any of them runs
//!   ToolFinished | ApprovalRequested  in the order in which the calls end
//!   StepStarted …
//! TurnEnded                           an answer, or a pause: see TurnOutcome
//!   TurnResumed                       after a pause or a crash, the same turn continues
//!   ApprovalDecided, ToolFinished, StepStarted … TurnEnded
//! ```

use std::ops::Add;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::turn_context::{TurnContext, shared};

/// An event of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The position after the event. Reading the log after this position continues with the next event.
    ///
    /// An event counts one; a piece of streamed text counts its bytes. Pieces may be stored in larger portions than
    /// they were sent in, and positions inside of them stay valid.
    pub position: u64,
    /// The turn: the id of its user message.
    pub turn: Arc<str>,
    /// In milliseconds since 1970.
    pub at: i64,
    pub body: EventBody,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventBody {
    /// A user message begins a turn. `reply` is the id of the assistant's message, to which all further events of the
    /// turn belong.
    TurnStarted {
        message: UserMessage,
        reply: String,
        /// A message for the model, set for this turn by a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The turn that this one replaces. It and all later turns are no longer part of the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<String>,
        /// History, instructions and client tools of the request.
        #[serde(default, with = "shared", skip_serializing_if = "shared::is_default")]
        context: Arc<TurnContext>,
    },
    /// The turn continues: after a confirmation, after results of the client's own tools, or after a crash.
    TurnResumed,
    /// A request to the model begins. `step` counts from 1 within the turn.
    StepStarted { step: u32, model: String },
    /// The step was interrupted by a crash and is repeated: its text and reasoning are ignored.
    StepDiscarded { step: u32 },
    /// A piece of a text part.
    Text { part: u32, text: String },
    /// A piece of a reasoning part.
    Reasoning { part: u32, text: String },
    /// A text or reasoning part is complete.
    PartEnded {
        part: u32,
        /// Data for the provider only: sent back to it unchanged with the next request. Wires leave it out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<ProviderData>,
    },
    /// The model's response is complete.
    StepFinished {
        step: u32,
        finish: FinishReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// The model calls a tool.
    ToolCalled {
        call: ToolCallPart,
        /// See [`EventBody::PartEnded`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<ProviderData>,
    },
    /// The result of a call, whether it succeeded, failed, was refused or was rejected. A call that runs in the
    /// background has two: first its task, later the result of the task.
    ToolFinished { result: ToolResultPart },
    /// A call waits for confirmation. It has no result yet.
    ApprovalRequested { approval: ConfirmationPart },
    /// A person has approved or rejected a call. Its result follows.
    ApprovalDecided {
        approval_id: String,
        call_id: String,
        approved: bool,
        /// The name of the approver.
        by: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The client has sent the results of its own tools.
    ClientResults { results: Vec<ToolResultPart> },
    /// The turn has ended, or pauses.
    TurnEnded { outcome: TurnOutcome },
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The client's id, unique within the session: a message that is sent again does not run again.
    pub id: String,
    pub parts: Vec<InputPart>,
}

/// A part of a user message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputPart {
    Text {
        text: String,
    },
    /// A picture: an `https:` or `data:` URL.
    Image {
        url: String,
    },
}

/// A call that the model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallPart {
    /// The execution id: the provider's id, or a generated one if that is missing, unusable or already used.
    pub id: String,
    /// The name as the model wrote it: it may be empty or unknown.
    pub tool: String,
    /// An object, or the text that is not JSON. Excludes arguments that the tool marks as `writeOnly`.
    pub args: Value,
    /// Arguments were left out, so the call cannot be repeated from the log.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_redacted: bool,
    /// A tool of the client, which runs the call itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_client_tool: bool,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResultPart {
    pub call_id: String,
    pub tool: String,
    /// The value for the model: `{ok: true, data}` or `{ok: false, error, type, …}`.
    #[serde(with = "shared_value")]
    pub content: Arc<Value>,
    pub is_error: bool,
    /// A person has rejected the call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_declined: bool,
    pub duration_ms: u64,
    /// The task that the call has begun. The task's result will replace this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// A confirmation request as the conversation shows it to the session's owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationPart {
    /// The id with which the owner answers: see [`toolwright_orchestrator::confirmation_token::answer_id`]. Not shown
    /// to models.
    pub id: String,
    pub call_id: String,
    pub tool: String,
    /// The arguments that would run; secrets are redacted.
    pub args: Value,
    pub preview: String,
    /// In milliseconds since 1970.
    pub expires_at: i64,
    /// The result that the model receives while the call waits.
    #[serde(with = "shared_value")]
    pub content: Arc<Value>,
}

impl ConfirmationPart {
    /// The id of the confirmation request, with which an admin answers.
    pub fn confirmation_id(&self) -> &str {
        toolwright_orchestrator::confirmation_token::request_id(&self.id)
    }
}

/// How a turn ended, or why it pauses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// The model has given its final answer.
    Completed,
    /// The model stopped at its output limit or at a filter of its provider.
    Truncated,
    /// The turn reached its maximum number of steps without a final answer.
    StepLimit { max_steps: u32 },
    /// Pauses: at least one call waits for confirmation.
    AwaitsApproval,
    /// Pauses: the client has to run calls of its own tools.
    AwaitsClient,
    /// Stopped by the user, or without a listener for longer than the grace time.
    Stopped,
    /// The request to the model failed.
    Failed { error: TurnError },
}

impl TurnOutcome {
    /// The name in metrics and spans.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Truncated => "truncated",
            Self::StepLimit { .. } => "step_limit",
            Self::AwaitsApproval => "awaits_approval",
            Self::AwaitsClient => "awaits_client",
            Self::Stopped => "stopped",
            Self::Failed { .. } => "failed",
        }
    }

    /// Whether the turn will continue.
    pub const fn is_pause(&self) -> bool {
        matches!(self, Self::AwaitsApproval | Self::AwaitsClient)
    }
}

/// Why a turn failed, for the user. Contains neither keys nor texts of the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// As in [`crate::ModelErrorKind`]: `authentication`, `unknown_model`, …
    pub code: String,
    pub message: String,
}

/// Why a response of the model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    Stop,
    ToolCalls,
    /// The output limit of the model was reached.
    Length,
    /// Refused by the model or by a filter of its provider.
    ContentFilter,
    /// The turn was stopped, or the stream failed.
    Interrupted,
    Other,
}

/// The tokens of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, with those from the prompt cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}

/// Data that only its provider understands, such as a signature. Never sent to another provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    pub provider: String,
    pub value: Value,
}

impl EventBody {
    /// Number of positions that the body takes: see [`Event::position`].
    pub fn length(&self) -> u64 {
        match self {
            Self::Text { text, .. } | Self::Reasoning { text, .. } => text.len().max(1) as u64,
            _ => 1,
        }
    }
}

impl Event {
    /// The event without the part up to this position: a piece of text may span it.
    pub fn suffix_after(&self, position: u64) -> Option<Self> {
        if self.position <= position {
            return None;
        }
        let start = self.position - self.body.length();
        let rest = |text: &str| {
            let seen = usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX).min(text.len());
            text[text.floor_char_boundary(seen)..].to_owned()
        };
        let body = match &self.body {
            EventBody::Text { part, text } => EventBody::Text { part: *part, text: rest(text) },
            EventBody::Reasoning { part, text } => EventBody::Reasoning { part: *part, text: rest(text) },
            body => body.clone(),
        };
        Some(Self { position: self.position, turn: Arc::clone(&self.turn), at: self.at, body })
    }

    /// Appends the text of the following event, if it belongs to the same part.
    pub(crate) fn extend(&mut self, next: &EventBody) -> bool {
        let (own, text) = match (&mut self.body, next) {
            (EventBody::Text { part, text }, EventBody::Text { part: next, text: more }) if part == next => {
                (text, more)
            }
            (EventBody::Reasoning { part, text }, EventBody::Reasoning { part: next, text: more })
                if part == next && !text.is_empty() =>
            {
                (text, more)
            }
            _ => return false,
        };
        own.push_str(text);
        self.position += text.len() as u64;
        !text.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A shared value as JSON.
mod shared_value {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub fn serialize<S: Serializer>(value: &Arc<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Value>, D::Error> {
        Value::deserialize(deserializer).map(Arc::new)
    }
}
