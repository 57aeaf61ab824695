//! The conversation as messages: what a client shows after a reload, and what a model reads.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{
    ConfirmationPart, FinishReason, ProviderData, ToolCallPart, ToolResultPart, TurnOutcome, Usage,
    UserMessage,
};

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
}

/// The assistant's message: everything from one user message to the next.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AssistantMessage {
    pub id: String,
    /// The id of the turn: that of the user message it answers.
    pub turn: String,
    pub steps: Vec<Step>,
    /// How the turn ended, or why it pauses. `None`: it runs, or its process has died.
    pub outcome: Option<TurnOutcome>,
    /// The tokens of all steps.
    pub usage: Usage,
}

/// One response of the model, with the results of its calls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    pub parts: Vec<Part>,
    /// Why the response ended. `None`: it is incomplete, and its calls are unknown.
    pub finish: Option<FinishReason>,
}

/// A part of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    Text { text: String, provider_data: Option<ProviderData> },
    Reasoning { text: String, provider_data: Option<ProviderData> },
    Tool(Box<ToolPart>),
}

/// A call with its confirmation and its result, if any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolPart {
    pub call: ToolCallPart,
    pub provider_data: Option<ProviderData>,
    pub approval: Option<ConfirmationPart>,
    pub decision: Option<Decision>,
    pub result: Option<ToolResultPart>,
}

/// A person's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub approved: bool,
    pub by: String,
    pub reason: Option<String>,
}

impl AssistantMessage {
    /// The calls of all steps.
    pub fn tools(&self) -> impl Iterator<Item = &ToolPart> {
        self.steps.iter().flat_map(Step::tools)
    }

    /// The text of all steps.
    pub fn text(&self) -> String {
        let parts = self.steps.iter().flat_map(|step| &step.parts);
        let texts = parts.filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

impl Step {
    pub fn tools(&self) -> impl Iterator<Item = &ToolPart> {
        self.parts.iter().filter_map(|part| match part {
            Part::Tool(tool) => Some(&**tool),
            _ => None,
        })
    }

    pub(crate) fn tools_mut(&mut self) -> impl Iterator<Item = &mut ToolPart> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Tool(tool) => Some(&mut **tool),
            _ => None,
        })
    }
}

impl ToolPart {
    /// The result for the model; without one, the reason.
    pub(crate) fn model_content(&self) -> &Value {
        match (&self.result, &self.approval) {
            (Some(result), _) => &result.content,
            (None, Some(approval)) => &approval.content,
            (None, None) => &Value::Null,
        }
    }

    /// Whether it waits for confirmation.
    pub const fn awaits_approval(&self) -> bool {
        self.approval.is_some() && self.decision.is_none() && self.result.is_none()
    }
}
