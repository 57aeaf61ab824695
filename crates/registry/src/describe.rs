//! `reg_describe`: the tool that every session has in addition to those of its toolset. This file has its
//! declaration; the orchestrator answers its calls.

use std::sync::LazyLock;

use serde_json::json;
use toolwright_contract::{Category, Confirmation, Mode, SideEffects, ToolSpec};

use crate::toolset::{Implementation, Tool};

pub const DESCRIBE: &str = "reg_describe";

const SUMMARY: &str = "Returns the full documentation of a tool: preconditions, failure modes, examples.";

static TOOL: LazyLock<Tool> = LazyLock::new(|| Tool {
    spec: ToolSpec {
        tool_id: DESCRIBE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: SUMMARY.to_owned(),
        category: Category::Utility,
        side_effects: SideEffects::None,
        idempotent: true,
        requires_confirmation: Confirmation::Always(false),
        allowed_modes: Mode::ALL.to_vec(),
        latency_budget_ms: 10.into(),
        timeout_ms: None,
        execution: None,
        availability: None,
        permissions: None,
        clamp: Default::default(),
        tags: Vec::new(),
        allow: Vec::new(),
        json_schema: json!({ "type": "object", "additionalProperties": false, "required": ["tool"],
            "properties": { "tool": { "type": "string", "description": "The tool's name." } } }),
        output: None,
    },
    summary: SUMMARY.to_owned(),
    implementation: Implementation::Native(DESCRIBE.to_owned()),
});

/// The declaration of `reg_describe`.
pub fn describe_tool() -> &'static Tool {
    &TOOL
}
