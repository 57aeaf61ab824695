//! `reg_describe`: the tool that every session has. It tells a tool's documentation and costs nothing.

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};

use crate::gate::role;
use crate::refusal::without_toolset;
use crate::trip::Trip;

/// Its name.
pub const DESCRIBE: &str = "reg_describe";

pub(crate) fn describe(trip: &Trip) -> Result<Success, Failure> {
    let name = trip.args.get("tool").and_then(Value::as_str).ok_or_else(|| {
        Failure::new(ErrorKind::Validation, "`tool` must name the tool to describe.")
            .suggest("Call it with {\"tool\": \"<name>\"}.")
    })?;
    let runtime = trip.runtime.as_ref().ok_or_else(without_toolset)?;
    let toolset = runtime.toolset();
    let tool = toolset.get(name).ok_or_else(|| runtime.unknown(name))?;
    role::check(&tool.spec, &trip.session.principal)?;
    let documentation = toolset.documentation(name);
    Ok(json!({ "tool": name, "version": tool.spec.version, "summary": tool.summary, "documentation": documentation,
        "parameters": tool.spec.json_schema })
    .into())
}
