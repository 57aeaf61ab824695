//! The numbers and rules in force. Enforced by the gates, never by prompt text.

use serde_json::{Map, Value};
use toolwright_contract::{Mode, RateLimit};
use toolwright_registry::prompt::Limits;

use crate::condition::Condition;

/// The limits of one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModePolicy {
    /// The limits that the prompt states too: retrieval calls per turn, the largest `top_k` of a retrieval, and after
    /// how long a retrieval counts as an overrun.
    pub limits: Limits,
    /// Retries of an idempotent tool after a retryable TRANSIENT failure.
    pub retries: u32,
}

/// The policy of an orchestrator.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub voice: ModePolicy,
    pub text: ModePolicy,
    /// Calls of one org, over all of its tools and clients.
    pub org_rate: Option<RateLimit>,
    /// The longest block of a client.
    pub max_block_ms: i64,
    /// How long a confirmation request waits for an answer.
    pub confirmation_ms: i64,
    /// The most confirmation requests of one session, and of one principal, that wait at a time.
    pub max_pending_per_session: usize,
    pub max_pending_per_principal: usize,
    /// Calls that need no person's approval: a CEL condition.
    pub approve_when: Option<String>,
    /// Whether a person may approve a tool for the rest of the session.
    pub may_remember: bool,
    /// The lifetime of a session.
    pub session_ms: i64,
    /// How long a session waits for a farewell before it ends.
    pub farewell_ms: i64,
    /// The variable `settings` of conditions.
    pub settings: Value,
    /// Whether the refusal of invalid arguments includes the tool's documentation.
    pub documentation_on_validation: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            voice: ModePolicy { limits: Limits::default_for(Mode::Voice), retries: 0 },
            text: ModePolicy { limits: Limits::default_for(Mode::Text), retries: 1 },
            org_rate: None,
            max_block_ms: 24 * 60 * 60 * 1000,
            confirmation_ms: 10 * 60 * 1000,
            max_pending_per_session: 50,
            max_pending_per_principal: 1000,
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
    /// Whether its rules compile; the error is for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.approve_when.as_deref().map_or(Ok(()), |rule| Condition::compile_rule(rule).map(drop))
    }

    pub fn for_mode(&self, mode: Mode) -> &ModePolicy {
        match mode {
            Mode::Voice => &self.voice,
            Mode::Text => &self.text,
        }
    }
}
