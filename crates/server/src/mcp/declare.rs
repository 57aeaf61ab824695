//! A tool as MCP declares it. The one place to change when views of all providers come from elsewhere.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as Declaration, ToolAnnotations};
use serde_json::{Value, json};
use toolwright_contract::{SideEffects, ToolSpec};
use toolwright_orchestrator::DESCRIBE;

/// What a tool's data is under when it is not an object, which MCP asks for.
pub(super) const WRAP: &str = "result";

/// How a tool is declared, and whether its data has to be wrapped to fit.
pub(super) struct Declared {
    pub tool: Declaration,
    pub wraps: bool,
}

pub(super) fn declare(spec: &ToolSpec) -> Declared {
    let writes = spec.side_effects == SideEffects::Writes;
    let hints = ToolAnnotations::new()
        .read_only(!writes)
        .destructive(writes && !spec.idempotent)
        .idempotent(spec.idempotent)
        .open_world(spec.side_effects != SideEffects::None);
    let mut tool =
        Declaration::new(spec.tool_id.clone(), spec.description.clone(), object(&spec.json_schema))
            .with_annotations(hints);
    let wraps = spec.output.as_ref().is_some_and(|output| !is_object(output));
    if let Some(output) = spec.output.as_ref().filter(|output| !wraps || may_be_wrapped(output)) {
        tool.output_schema = Some(if wraps { wrapped(output) } else { object(output) });
    }
    Declared { tool, wraps }
}

/// `reg_describe`, which every session has.
pub(super) fn describe() -> Declared {
    let parameters = json!({ "type": "object", "additionalProperties": false, "required": ["tool"],
        "properties": { "tool": { "type": "string", "description": "The tool's name." } } });
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    let words = "Returns the full documentation of a tool: preconditions, failure modes, examples.";
    Declared {
        tool: Declaration::new(DESCRIBE, words, object(&parameters)).with_annotations(hints),
        wraps: false,
    }
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// A schema that refers to its own root cannot be moved below another one.
fn may_be_wrapped(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().all(|(name, value)| {
            let moves = name == "$ref" && !value.as_str().is_some_and(|to| to.starts_with("#/$defs/"));
            !moves && name != "$dynamicRef" && may_be_wrapped(value)
        }),
        Value::Array(items) => items.iter().all(may_be_wrapped),
        _ => true,
    }
}

/// The schema below `result`; its definitions stay where references look for them.
fn wrapped(schema: &Value) -> Arc<JsonObject> {
    let mut inner = schema.clone();
    let definitions = inner.as_object_mut().and_then(|inner| inner.remove("$defs"));
    let mut outer = JsonObject::new();
    outer.insert("type".to_owned(), "object".into());
    outer.insert("properties".to_owned(), json!({ WRAP: inner }));
    outer.insert("required".to_owned(), json!([WRAP]));
    if let Some(definitions) = definitions {
        outer.insert("$defs".to_owned(), definitions);
    }
    Arc::new(outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(output: Value) -> ToolSpec {
        serde_json::from_value(json!({
            "toolId": "search", "version": "1.0.0", "description": "Searches.", "category": "retrieval",
            "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
            "allowedModes": ["text"], "latencyBudgetMs": 100,
            "jsonSchema": { "type": "object", "properties": {}, "additionalProperties": false },
            "output": output,
        }))
        .unwrap()
    }

    #[test]
    fn hints_come_from_what_a_tool_says_about_itself() {
        let Declared { tool, wraps } = declare(&spec(json!({ "type": "object", "properties": {} })));
        assert_eq!(
            serde_json::to_value(&tool).unwrap(),
            json!({ "name": "search", "description": "Searches.",
                "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
                "outputSchema": { "type": "object", "properties": {} },
                "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
                    "openWorldHint": true } })
        );
        assert!(!wraps);
        let writing = ToolSpec { side_effects: SideEffects::Writes, idempotent: false, ..spec(Value::Null) };
        let hints = declare(&writing).tool.annotations.unwrap();
        assert_eq!((hints.read_only_hint, hints.destructive_hint), (Some(false), Some(true)));
    }

    #[test]
    fn an_output_that_is_no_object_is_wrapped_with_its_definitions() {
        let output = json!({ "type": "array", "items": { "$ref": "#/$defs/hit" }, "$defs": { "hit": { "type": "string" } } });
        let Declared { tool, wraps } = declare(&spec(output));
        let schema = Value::Object((*tool.output_schema.unwrap()).clone());
        assert!(wraps);
        assert_eq!(schema["properties"]["result"]["items"]["$ref"], "#/$defs/hit");
        assert_eq!(schema["$defs"]["hit"]["type"], "string");
        let recursive =
            json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "$ref": "#" } }] });
        assert!(declare(&spec(recursive)).tool.output_schema.is_none());
    }
}
