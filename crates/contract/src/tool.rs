//! What a tool declares about itself: the fields of `schema.json`, typed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::words::words;

words! {
    /// What a tool is to the agent: eyes, hands or a deterministic helper.
    Category {
        /// Reads context; idempotent, never writes.
        Retrieval = "retrieval",
        /// Does something on the user's behalf.
        Action = "action",
        /// Transforms its arguments.
        Utility = "utility",
    }
}

words! {
    /// What a call leaves behind in the world.
    SideEffects {
        /// Nothing is read or changed outside the call.
        None = "none",
        /// External state is read.
        ReadOnly = "read_only",
        /// External state is changed.
        Writes = "writes",
    }
}

words! {
    /// How the session converses.
    Mode {
        /// Written conversation.
        Text = "text",
        /// Spoken conversation.
        Voice = "voice",
    }
}

words! {
    /// Whether the caller waits for the result.
    Execution {
        /// The call is answered with its result.
        Foreground = "foreground",
        /// The call is answered with a task; the result follows.
        Background = "background",
    }
}

/// When a person has to approve a call, and what they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Confirmation {
    /// Always, or never.
    Always(bool),
    /// When a rule says so.
    Rule(ConfirmationRule),
}

impl Confirmation {
    /// True when no call of the tool ever asks.
    pub const fn is_never(&self) -> bool {
        matches!(self, Self::Always(false))
    }
}

/// A confirmation by policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmationRule {
    /// CEL over `mode`, `session`, `user` and `args`.
    pub when: String,
    /// Template of what the person is shown; `{{name}}` stands for an argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// When the tool is there at all.
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

/// Everything that a tool declares, as the artifact carries it (`parameters` is named `jsonSchema` there).
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
    pub execution: Option<Execution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<Availability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clamp: BTreeMap<Mode, BTreeMap<String, Number>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub json_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl ToolSpec {
    /// Whether somebody with these roles may use it.
    pub fn admits(&self, roles: &[String]) -> bool {
        let wanted = self.permissions.as_ref().map_or(&[][..], |permissions| &permissions.roles);
        wanted.is_empty() || wanted.iter().any(|role| roles.contains(role))
    }
}
