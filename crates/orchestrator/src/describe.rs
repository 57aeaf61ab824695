//! The calls of `reg_describe`: returns the documentation of a tool that the session may use, and spends no budget.

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};

use crate::execution::Execution;
use crate::orchestrator::Orchestrator;
use crate::refusal::toolset_missing;

pub use toolwright_registry::DESCRIBE;

pub(crate) fn describe(orchestrator: &Orchestrator, execution: &Execution) -> Result<Success, Failure> {
    let name = execution.args.get("tool").and_then(Value::as_str).ok_or_else(|| {
        Failure::new(ErrorKind::Validation, "`tool` must name the tool to describe.")
            .suggest("Call it with {\"tool\": \"<name>\"}.")
    })?;
    let runtime = execution.runtime.as_ref().ok_or_else(toolset_missing)?;
    let toolset = runtime.toolset();
    let session = &execution.session;
    let Some(tool) = toolset.get(name) else {
        return Err(orchestrator.unknown_tool(runtime, session, name));
    };
    orchestrator.check_usable(runtime, session, &tool.spec)?;
    let documentation = toolset.documentation(name);
    Ok(json!({ "tool": name, "version": tool.spec.version, "summary": tool.summary, "documentation": documentation,
        "parameters": tool.spec.json_schema })
    .into())
}
