//! History, instructions and client tools of a request. They are stored with the turn, which needs them when it
//! continues after a confirmation, after results of the client, or in another process.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::request::{ClientTool, ToolAccess};

/// The additions of a request to its turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnContext {
    /// The conversation before this turn, if the client sends it. `None`: the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Message>>,
    /// Instructions of the client, added after the composed prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default)]
    pub access: ToolAccess,
    /// Tools that the client runs itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<ClientTool>,
}

impl TurnContext {
    /// Whether a call of this name belongs to a tool of the client.
    pub(crate) fn is_client_tool(&self, name: &str) -> bool {
        self.client_tools.iter().any(|tool| tool.name == name)
    }

    /// The context of a continued turn. Values of the request take precedence.
    pub(crate) fn continued_by(self: Arc<Self>, request: &Self) -> Arc<Self> {
        let is_same = |own: &[ClientTool], new: &[ClientTool]| new.is_empty() || own == new;
        if is_same(&self.client_tools, &request.client_tools) && request.instructions.is_none() {
            return self;
        }
        let mut context = Self::clone(&self);
        if !request.client_tools.is_empty() {
            context.client_tools.clone_from(&request.client_tools);
        }
        if request.instructions.is_some() {
            context.instructions.clone_from(&request.instructions);
        }
        Arc::new(context)
    }
}

/// A shared value as JSON; nothing for the default.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::TurnContext;

    pub fn serialize<S: Serializer>(value: &Arc<TurnContext>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<TurnContext>, D::Error> {
        TurnContext::deserialize(deserializer).map(Arc::new)
    }

    pub fn is_default(value: &Arc<TurnContext>) -> bool {
        **value == TurnContext::default()
    }
}
