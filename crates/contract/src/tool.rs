//! The declaration of a tool: the fields of `schema.json`, typed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::word_enum::word_enum;

word_enum! {
    /// The purpose of a tool.
    Category {
        /// Reads information; idempotent, never writes.
        Retrieval = "retrieval",
        /// Acts on the user's behalf.
        Action = "action",
        /// Computes its result from its arguments.
        Utility = "utility",
    }
}

word_enum! {
    /// The effect of a call on external state.
    SideEffects {
        /// External state is neither read nor changed.
        None = "none",
        /// External state is read.
        ReadOnly = "read_only",
        /// External state is changed.
        Writes = "writes",
    }
}

word_enum! {
    /// The medium of a conversation.
    Mode {
        /// By text.
        Text = "text",
        /// By voice.
        Voice = "voice",
    }
}

word_enum! {
    /// Whether the caller waits for the result.
    ExecutionMode {
        /// The call returns its result.
        Foreground = "foreground",
        /// The call returns a task; the result follows.
        Background = "background",
    }
}

/// When a person has to approve a call, and the preview they see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Confirmation {
    /// Always, or never.
    Always(bool),
    /// When the condition of a rule holds.
    Rule(ConfirmationRule),
}

impl Confirmation {
    /// True when no call of the tool needs confirmation.
    pub const fn is_never(&self) -> bool {
        matches!(self, Self::Always(false))
    }
}

/// A conditional confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmationRule {
    /// CEL over `mode`, `session`, `user` and `args`.
    pub when: String,
    /// Template of the preview; `{{name}}` is replaced by an argument, or by a member of what is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Values that the preview shows beside the arguments, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub read: BTreeMap<String, PreviewRead>,
}

/// A call of a capability that reads what a preview shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewRead {
    /// One of [`PREVIEW_FUNCTIONS`].
    pub call: String,
    /// The object that it is called with. Texts are templates over the arguments.
    #[serde(default)]
    pub with: Map<String, Value>,
}

/// The functions of capabilities that a preview may call: they change nothing.
pub const PREVIEW_FUNCTIONS: &[&str] = &["calendar.freeBusy", "calendar.getDraft", "kb.get", "kb.search"];

/// When the tool is available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Availability {
    /// CEL over `mode`, `session`, `user` and `args`.
    pub condition: String,
}

/// Who may call, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Permissions {
    /// Only for principals that have proven who they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_auth: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// At most `calls` within `window` milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    pub calls: u64,
    pub window: u64,
}

/// Everything that a tool declares, as in the artifact (where `parameters` is named `jsonSchema`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    pub tool_id: String,
    pub version: String,
    pub description: String,
    pub category: Category,
    pub side_effects: SideEffects,
    pub idempotent: bool,
    pub requires_confirmation: Confirmation,
    pub allowed_modes: Vec<Mode>,
    pub latency_budget_ms: Number,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<Availability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clamp: BTreeMap<Mode, BTreeMap<String, Number>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Codes of warnings that the author has acknowledged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    pub json_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl ToolSpec {
    /// Whether it is only for principals that have proven who they are.
    pub fn requires_auth(&self) -> bool {
        self.permissions.as_ref().is_some_and(|permissions| permissions.requires_auth)
    }

    /// Whether a principal with these roles may use it.
    pub fn admits(&self, roles: &[String]) -> bool {
        let required = self.permissions.as_ref().map_or(&[][..], |permissions| &permissions.roles);
        required.is_empty() || required.iter().any(|role| roles.contains(role))
    }
}
