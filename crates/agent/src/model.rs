//! The turn loop's view of a model: a request in, a stream of events out. Only the transport knows the provider.

use std::sync::Arc;

use serde_json::Value;
use toolwright_providers::{Call, View};

use crate::event::{FinishReason, Usage};
use crate::message::Message;
use crate::offline::{self, OfflineStep};
use crate::settings::ModelSettings;
use crate::transport::{RemoteModel, ResponseStream};

/// A model, or the offline agent.
#[derive(Debug, Clone)]
pub enum Model {
    /// A language model behind an HTTP API.
    Remote(Arc<RemoteModel>),
    /// Not a language model: quotes the knowledge base, and runs `/tool_name {json}`.
    Offline,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct ModelRequest {
    pub system: Arc<str>,
    pub view: Arc<View>,
    /// The names of the declared tools.
    pub tools: Arc<[String]>,
    pub messages: Vec<Message>,
    pub max_output_tokens: Option<u32>,
    /// The response must call a tool. Only with tools, and with a transport that [supports
    /// it](crate::transport::Transport).
    pub requires_call: bool,
}

/// A part of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelEvent {
    Text(String),
    Reasoning(String),
    /// The part ends. The value is sent back to the provider unchanged.
    PartEnded(Option<Value>),
    Call {
        call: Call,
        provider_data: Option<Value>,
    },
    /// The response is complete.
    Finished {
        finish: FinishReason,
        usage: Option<Usage>,
    },
}

/// The events of one response.
#[derive(Debug)]
pub(crate) enum ModelStream {
    Remote(Box<ResponseStream>),
    Offline(OfflineStep),
}

/// Why a model could not answer. The text is for the user: it contains neither the key nor the provider's own text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    pub message: String,
}

/// The kinds of failures of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or may not use the model.
    Authentication,
    UnknownModel,
    RateLimited,
    /// The account has no credit.
    Quota,
    /// The conversation exceeds the model's context.
    ContextLength,
    /// The provider refuses the request for another reason.
    InvalidRequest,
    /// The provider is unreachable, or fails.
    Unavailable,
    Timeout,
    /// The response ended before it was complete.
    Cut,
    /// The response violates the provider's API.
    Malformed,
    TooLarge,
}

impl ModelErrorKind {
    /// As in [`crate::TurnError::code`] and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::UnknownModel => "unknown_model",
            Self::RateLimited => "rate_limited",
            Self::Quota => "quota",
            Self::ContextLength => "context_length",
            Self::InvalidRequest => "invalid_request",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
        }
    }
}

impl Model {
    /// A model behind an HTTP API. Checks the settings; sends no request.
    pub fn remote(settings: ModelSettings) -> Result<Self, String> {
        RemoteModel::new(settings).map(|model| Self::Remote(Arc::new(model)))
    }

    /// The name of the provider; `offline` for the offline agent.
    pub fn provider(&self) -> &str {
        match self {
            Self::Remote(model) => model.provider().name,
            Self::Offline => offline::NAME,
        }
    }

    /// The name of the model.
    pub fn name(&self) -> &str {
        match self {
            Self::Remote(model) => model.name(),
            Self::Offline => offline::NAME,
        }
    }

    /// The provider whose tool declarations the model reads.
    pub(crate) fn view_provider(&self) -> &'static toolwright_providers::Provider {
        match self {
            Self::Remote(model) => model.provider(),
            Self::Offline => offline::view_provider(),
        }
    }

    /// Sends a request, and waits for the beginning of the response.
    pub(crate) async fn send(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        match self {
            Self::Remote(model) => Ok(ModelStream::Remote(Box::new(model.send(request).await?))),
            Self::Offline => Ok(ModelStream::Offline(offline::answer(request))),
        }
    }
}

impl ModelStream {
    /// The next piece; the last one is [`ModelEvent::Finished`].
    pub async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        match self {
            Self::Remote(stream) => stream.next().await,
            Self::Offline(step) => Ok(step.next()),
        }
    }
}
