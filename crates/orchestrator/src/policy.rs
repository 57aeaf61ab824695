//! The numbers and rules in force. Enforced by the gates, never by prompt text.

use serde_json::{Map, Value};
use toolwright_contract::{Mode, RateLimit};
use toolwright_registry::prompt::Limits;

use crate::condition::Condition;

/// What holds in one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModePolicy {
    /// Retrieval calls per turn.
    pub retrieval_calls: u32,
    /// The largest `top_k` of a retrieval.
    pub top_k: u32,
    /// A retrieval that takes longer is counted as slow.
    pub retrieval_soft_limit_ms: u32,
    /// How often a TRANSIENT, retryable call of an idempotent tool is tried again.
    pub retries: u32,
}

impl ModePolicy {
    /// The numbers that the prompt tells, too, and how often is tried again.
    pub const fn new(limits: Limits, retries: u32) -> Self {
        let Limits { retrieval_calls, top_k, retrieval_soft_limit_ms } = limits;
        Self { retrieval_calls, top_k, retrieval_soft_limit_ms, retries }
    }
}

/// What holds everywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub voice: ModePolicy,
    pub text: ModePolicy,
    /// Calls of one org, over all of its tools and clients.
    pub org_rate: Option<RateLimit>,
    /// How long a question waits for a person.
    pub confirmation_ms: i64,
    /// Calls that are approved without asking anyone: a CEL condition.
    pub approve_when: Option<String>,
    /// Whether "don't ask again for this tool" is heeded.
    pub may_remember: bool,
    /// How long a session lives.
    pub session_ms: i64,
    /// How long a farewell may take before the session ends without it.
    pub farewell_ms: i64,
    /// What conditions find under `settings`.
    pub settings: Value,
    /// Whether a refusal of arguments carries the tool's documentation.
    pub documentation_on_validation: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            voice: ModePolicy::new(Limits::of(Mode::Voice), 0),
            text: ModePolicy::new(Limits::of(Mode::Text), 1),
            org_rate: None,
            confirmation_ms: 10 * 60 * 1000,
            approve_when: None,
            may_remember: false,
            session_ms: 24 * 60 * 60 * 1000,
            farewell_ms: 15 * 1000,
            settings: Value::Object(Map::new()),
            documentation_on_validation: true,
        }
    }
}

impl Policy {
    /// Whether its rules can be used; the error is for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.approve_when.as_deref().map_or(Ok(()), |rule| Condition::compile(rule).map(drop))
    }

    pub fn of(&self, mode: Mode) -> &ModePolicy {
        match mode {
            Mode::Voice => &self.voice,
            Mode::Text => &self.text,
        }
    }
}
