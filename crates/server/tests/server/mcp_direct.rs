//! A plain call of the later era is answered without the library: with the very bytes that the library gives.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use super::support::{Served, tool};

const VERSION: &str = "2026-07-28";

fn gives(id: &str, data: Value, fields: Value) -> Tool {
    let mut tool = tool(id, &fields);
    tool.implementation = Implementation::Mock(data);
    tool
}

fn orchestrator() -> Orchestrator {
    let reads = |output: Value| {
        let mut fields = json!({ "category": "utility", "sideEffects": "none", "idempotent": true });
        if !output.is_null() {
            fields["output"] = output;
        }
        fields["jsonSchema"] = json!({ "type": "object", "additionalProperties": false, "properties": {
            "text": { "type": "string" } } });
        fields
    };
    let nested =
        json!({ "found": [{ "title": "a \"b\" \\ \n é 🦀", "score": 0.25 }, {}], "none": null, "n": -1 });
    let tools = vec![
        gives("gives_object", nested.clone(), reads(Value::Null)),
        gives("gives_text", json!("a \"text\"\n"), reads(Value::Null)),
        gives("gives_list", json!([1, "two", 3.5]), reads(Value::Null)),
        gives("gives_nothing", Value::Null, reads(Value::Null)),
        gives("gives_declared", nested, reads(json!({ "type": "object" }))),
        gives("gives_number", json!(7), reads(json!({ "type": "integer" }))),
        gives("gives_wrong", json!("no number"), reads(json!({ "type": "integer" }))),
        gives("writes", json!({ "done": true }), json!({})),
        gives("of_staff", json!({}), json!({ "permissions": { "roles": ["staff"] } })),
        gives("only_spoken", json!({}), json!({ "allowedModes": ["voice"] })),
    ];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    Orchestrator::builder(Runtime::builder(Arc::new(toolset), ".").build()).build().unwrap()
}

/// With something in `_meta` that only the library looks at, the call is its business.
async fn answered(
    served: &Served,
    tool: &str,
    args: &Value,
    more: Option<&str>,
) -> (u16, Vec<String>, String) {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} });
    if let Some(more) = more {
        meta[more] = json!("x");
    }
    let body = json!({ "jsonrpc": "2.0", "id": "a \"b\"", "method": "tools/call", "params": {
        "name": tool, "arguments": args, "_meta": meta } });
    let client = served.client.with("accept", "application/json, text/event-stream");
    let client =
        client.with("mcp-protocol-version", VERSION).with("mcp-method", "tools/call").with("mcp-name", tool);
    let response = client.post("/mcp", body).await;
    let mut told: Value = response.json();
    // Every call without a name has a session, and so an id, of its own when it writes; and its own duration.
    for own in ["executionId", "duration"] {
        if let Some(value) = told.pointer_mut(&format!("/result/_meta/toolwright~1meta/{own}")) {
            *value = Value::Null;
        }
    }
    let is_own = |line: &&str| {
        !line.starts_with("date") && !line.starts_with("x-request-id") && !line.starts_with("content-length")
    };
    let head = response.head.lines().skip(1).filter(is_own).map(str::to_owned).collect();
    (response.status, head, told.to_string())
}

#[tokio::test]
async fn a_plain_call_gets_the_bytes_that_the_library_gives() {
    let served = Served::of(orchestrator(), Arc::default(), Arc::new(tokio::sync::Semaphore::new(0))).await;
    for tool in [
        "gives_object",
        "gives_text",
        "gives_list",
        "gives_nothing",
        "gives_declared",
        "gives_number",
        "gives_wrong",
        "writes",
        "of_staff",
        "only_spoken",
        "reg_describe",
        "unknown",
    ] {
        for args in [json!({}), json!({ "text": 1, "txt": "x" })] {
            let direct = answered(&served, tool, &args, None).await;
            let library = answered(&served, tool, &args, Some("x.example/looked-at-by-the-library")).await;
            assert_eq!(direct, library, "{tool} {args}");
        }
    }
}
