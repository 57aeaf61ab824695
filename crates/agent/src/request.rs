//! Requests of a wire to the agent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwright_contract::{Mode, Principal};

use crate::event::{InputPart, UserMessage};
use crate::message::Message;

/// A turn to start.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// A stored session of this mode.
    pub session: String,
    pub mode: Mode,
    pub input: TurnInput,
    /// The authenticated principal of the request: its roles decide which tools are declared and may run. `None`: the
    /// session's own principal.
    pub principal: Option<Arc<Principal>>,
    /// The conversation so far, for wires whose client sends it with every request. `None`: the session's own history.
    pub history: Option<Vec<Message>>,
    /// Instructions of the client, added after the composed prompt.
    pub instructions: Option<String>,
    pub tools: ToolAccess,
    /// Tools that the client runs itself. A name that a tool of the server has is refused.
    pub client_tools: Vec<ClientTool>,
    /// For a message: the id of an earlier message that it replaces, together with everything after that.
    pub replaces: Option<String>,
}

/// The input that begins a turn, or continues one.
#[derive(Debug, Clone)]
pub enum TurnInput {
    /// A user message. If the session already has a message with this id, its turn is returned unchanged; it
    /// continues if its process has died.
    Message(UserMessage),
    /// The history of the request ends with the assistant, after results of the client's own tools: the turn
    /// continues. The id is that of a message.
    Continue { id: String },
    /// The results of calls of the client's own tools: the turn that waits for them continues.
    ClientResults(Vec<ClientResult>),
}

/// The result of a call of a client's tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientResult {
    pub call_id: String,
    /// Any JSON; a text if the client sends text.
    pub content: Value,
    pub is_error: bool,
}

/// A tool that the client runs itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// Which of the server's tools the model may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAccess {
    /// All tools that the session may use.
    #[default]
    Session,
    /// None: for titles and summaries.
    None,
}

/// A person's answer to a confirmation request.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    pub session: String,
    /// The id of the request: [`crate::ConfirmationPart::id`].
    pub approval_id: String,
    pub approved: bool,
    pub reason: Option<String>,
    /// Edited arguments, which are validated again. Only for an approval.
    pub args: Option<Value>,
    /// The authenticated user: the session's own principal.
    pub principal: Arc<Principal>,
}

impl TurnRequest {
    /// A user message.
    pub fn message(session: impl Into<String>, message: UserMessage) -> Self {
        Self::new(session, TurnInput::Message(message))
    }

    pub fn new(session: impl Into<String>, input: TurnInput) -> Self {
        Self {
            session: session.into(),
            mode: Mode::Text,
            input,
            principal: None,
            history: None,
            instructions: None,
            tools: ToolAccess::Session,
            client_tools: Vec::new(),
            replaces: None,
        }
    }
}

impl UserMessage {
    /// A message of text with a random id.
    pub fn new(text: impl Into<String>) -> Self {
        Self::text(format!("msg_{}", crate::ids::random()), text)
    }

    /// A message of text.
    pub fn text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), parts: vec![InputPart::Text { text: text.into() }] }
    }

    pub(crate) fn bytes(&self) -> usize {
        let bytes = |part: &InputPart| match part {
            InputPart::Text { text } => text.len(),
            InputPart::Image { url } => url.len(),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// All of its text.
    pub fn to_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            InputPart::Text { text } => Some(text.as_str()),
            InputPart::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
