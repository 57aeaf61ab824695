//! `reg_describe`: the tool that every session has. It returns a tool's documentation and spends no budget.

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};

use crate::execution::Execution;
use crate::gate::role;
use crate::refusal::toolset_unloaded;

pub const DESCRIBE: &str = "reg_describe";

pub(crate) fn describe(execution: &Execution) -> Result<Success, Failure> {
    let name = execution.args.get("tool").and_then(Value::as_str).ok_or_else(|| {
        Failure::new(ErrorKind::Validation, "`tool` must name the tool to describe.")
            .suggest("Call it with {\"tool\": \"<name>\"}.")
    })?;
    let runtime = execution.runtime.as_ref().ok_or_else(toolset_unloaded)?;
    let toolset = runtime.toolset();
    let tool = toolset.get(name).ok_or_else(|| runtime.unknown_tool(name))?;
    role::check(&tool.spec, &execution.session.principal)?;
    let documentation = toolset.documentation(name);
    Ok(json!({ "tool": name, "version": tool.spec.version, "summary": tool.summary, "documentation": documentation,
        "parameters": tool.spec.json_schema })
    .into())
}
