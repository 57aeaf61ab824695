//! The Model Context Protocol: the declarations of `tools/list`, the calls and results of `tools/call`. JSON-RPC
//! framing belongs to the transport.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use toolwright_contract::{ExecutionMode, SideEffects, ToolSpec};

use crate::ToolResult;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::{MCP, to_2020_12};
use crate::provider::{Declaration, Provider, is_name, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "mcp",
    title: "Model Context Protocol",
    max_tools: None,
    framing: Framing::Lines,
    accepts_name: |name| is_name(name, 128, "_.-"),
    dialect: &MCP,
    declare,
    wrap: |tools| object([("tools", tools.into())]),
    read,
    read_event: |calls, event| calls.complete.extend(read(event)),
    write: |results| results.iter().map(write).collect(),
};

fn declare(tool: Declaration<'_>) -> Value {
    let spec = tool.spec;
    let mut declaration = tool.into_object("inputSchema");
    if let Some(output) = output_schema(spec) {
        declaration["outputSchema"] = output;
    }
    declaration["annotations"] = hints(spec);
    declaration
}

/// One tool as `tools/list` declares it; nothing if MCP does not accept its name.
pub fn declaration(spec: &ToolSpec) -> Option<Value> {
    PROVIDER.view([spec]).declarations.pointer_mut("/tools/0").map(Value::take)
}

/// The member of `structuredContent` that holds a result that is not an object: MCP requires an object there.
pub const RESULT_MEMBER: &str = "result";

/// The form that the declaration of a tool gives the structured content of its results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputForm {
    /// All results go below [`RESULT_MEMBER`], because the declared output is not an object.
    pub is_wrapped: bool,
    /// The declaration has an `outputSchema`. Structured content must conform to it, so a failure has none.
    pub has_schema: bool,
}

impl OutputForm {
    pub fn of_tool(spec: &ToolSpec) -> Self {
        Self { is_wrapped: wraps_output(spec), has_schema: output_schema(spec).is_some() }
    }
}

/// The result of a call, as `tools/call` returns it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult<'a> {
    /// The data as text for the model; a transport may add texts.
    pub content: Vec<TextContent<'a>>,
    /// The data for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Cow<'a, Value>>,
    is_error: bool,
}

/// One text of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextContent<'a> {
    r#type: &'static str,
    text: Cow<'a, str>,
}

impl<'a> From<Cow<'a, str>> for TextContent<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self { r#type: "text", text }
    }
}

/// The result of a call from its data, or from the model's form of its failure.
pub fn call_result<'a>(output: OutputForm, outcome: Result<&'a Value, Cow<'a, Value>>) -> CallResult<'a> {
    let is_error = outcome.is_err();
    let (text, structured_content) = match outcome {
        Ok(data) => {
            let structured = match output.is_wrapped || !data.is_object() {
                true => Cow::Owned(json!({ RESULT_MEMBER: data })),
                false => Cow::Borrowed(data),
            };
            // Text stays as it is; other data becomes JSON.
            let text = data.as_str().map_or_else(|| data.to_string().into(), Cow::Borrowed);
            (text, Some(structured))
        }
        Err(failure) => (failure.to_string().into(), (!output.has_schema).then_some(failure)),
    };
    CallResult { content: vec![text.into()], structured_content, is_error }
}

fn wraps_output(spec: &ToolSpec) -> bool {
    declared_output(spec).is_some_and(|output| output["type"] != "object")
}

/// A call that runs in the background is answered with a task, whatever its output is.
fn declared_output(spec: &ToolSpec) -> Option<&Value> {
    spec.output.as_ref().filter(|_| spec.execution != Some(ExecutionMode::Background))
}

/// Clients validate every result against it, so it is declared only if every result conforms.
fn output_schema(spec: &ToolSpec) -> Option<Value> {
    let output = declared_output(spec)?;
    if !wraps_output(spec) {
        return Some(Value::Object(to_2020_12(output)));
    }
    refers_to_definitions_only(output).then(|| Value::Object(to_2020_12(&wrapped(output))))
}

/// A schema that refers to its own root cannot be moved below another one.
fn refers_to_definitions_only(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().all(|(name, value)| {
            let is_other = name == "$ref" && !value.as_str().is_some_and(|to| to.starts_with("#/$defs/"));
            !is_other && name != "$dynamicRef" && refers_to_definitions_only(value)
        }),
        Value::Array(items) => items.iter().all(refers_to_definitions_only),
        _ => true,
    }
}

/// The schema below [`RESULT_MEMBER`]; its definitions stay at the root, where references look for them.
fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let definitions = inner.as_object_mut().and_then(|inner| inner.shift_remove("$defs"));
    let mut outer =
        json!({ "type": "object", "properties": { RESULT_MEMBER: inner }, "required": [RESULT_MEMBER] });
    if let Some(definitions) = definitions {
        outer["$defs"] = definitions;
    }
    outer
}

fn hints(spec: &ToolSpec) -> Value {
    let writes = spec.side_effects == SideEffects::Writes;
    json!({
        "readOnlyHint": !writes, "destructiveHint": writes, "idempotentHint": spec.idempotent,
        "openWorldHint": spec.side_effects != SideEffects::None,
    })
}

fn read(request: &Value) -> Vec<Call> {
    if request.get("method").is_none_or(|method| method != "tools/call") {
        return Vec::new();
    }
    let params = request.get("params").unwrap_or(&Value::Null);
    vec![Call::new(request.get("id"), params.get("name"), params.get("arguments"))]
}

fn write(result: &ToolResult<'_>) -> Value {
    let result = call_result(result.output, result.outcome());
    serde_json::to_value(result).unwrap_or_default()
}
