//! A plain call is answered without the library: with the very bytes that the library gives, and in a session, where that
//! gives a stream, with the same result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use super::client::Client;
use super::mcp_http::{ACCEPT, initialize};
use super::support::{Served, tool, until};

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

const TOOLS: [&str; 12] = [
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
];

#[tokio::test]
async fn a_plain_call_gets_the_bytes_that_the_library_gives() {
    let served = Served::of(orchestrator(), Arc::default(), Arc::new(tokio::sync::Semaphore::new(0))).await;
    for tool in TOOLS {
        for args in [json!({}), json!({ "text": 1, "txt": "x" })] {
            let direct = answered(&served, tool, &args, None).await;
            let library = answered(&served, tool, &args, Some("x.example/looked-at-by-the-library")).await;
            assert_eq!(direct, library, "{tool} {args}");
        }
    }
}

/// A host with a session that speaks HTTP by hand.
struct Host {
    client: Client,
    session: String,
    next: AtomicI64,
}

impl Host {
    async fn of(served: &Served) -> Self {
        Self::with(served.client.clone()).await
    }

    async fn with(client: Client) -> Self {
        let client = client.with("accept", ACCEPT).with("mcp-protocol-version", "2025-11-25");
        let begun = client.post("/mcp", initialize()).await;
        let session = begun.header("mcp-session-id").unwrap().to_owned();
        let client = client.with("mcp-session-id", session.clone());
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post("/mcp", told).await.status, 202);
        Self { client, session, next: AtomicI64::new(2) }
    }

    /// Whether it came past the library, and the answer.
    async fn asks(&self, method: &str, params: Value) -> (bool, Value) {
        self.asks_as(self.next.fetch_add(1, Ordering::Relaxed), method, params).await
    }

    async fn asks_as(&self, id: i64, method: &str, params: Value) -> (bool, Value) {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = self.client.post("/mcp", body).await;
        assert_eq!(response.status, 200);
        let is_direct = response.header("content-type") == Some("application/json");
        let told = response.text();
        let data = told.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| !data.is_empty());
        let answer: Value = serde_json::from_str(data.unwrap_or(told)).unwrap();
        assert_eq!(answer["id"], id);
        (is_direct, answer)
    }

    async fn calls(&self, tool: &str, args: Value) -> (bool, Value) {
        self.asks("tools/call", json!({ "name": tool, "arguments": args })).await
    }
}

#[tokio::test]
async fn a_plain_call_in_a_session_gets_the_result_that_the_library_gives() {
    let served = Served::of(orchestrator(), Arc::default(), Arc::new(tokio::sync::Semaphore::new(0))).await;
    let host = Host::of(&served).await;
    for tool in TOOLS {
        for args in [json!({}), json!({ "text": 1, "txt": "x" })] {
            let (was_direct, mut direct) = host.calls(tool, args.clone()).await;
            let params = json!({ "name": tool, "arguments": args, "_meta": { "x.example/looked-at": "x" } });
            let (was_library, mut library) = host.asks("tools/call", params).await;
            // What is in no toolset is the library's business.
            let is_known = !["reg_describe", "unknown"].contains(&tool);
            assert_eq!((was_direct, was_library), (is_known, false), "{tool}");
            for answer in [&mut direct, &mut library] {
                answer["id"] = Value::Null;
                for own in ["executionId", "duration"] {
                    if let Some(value) = answer.pointer_mut(&format!("/result/_meta/toolwright~1meta/{own}"))
                    {
                        *value = Value::Null;
                    }
                }
            }
            assert_eq!(direct.to_string(), library.to_string(), "{tool} {args}");
        }
    }
}

#[tokio::test]
async fn every_retrieval_of_a_session_is_a_turn_and_a_resent_call_is_not_run_again() {
    let served = Served::start().await;
    let host = Host::of(&served).await;
    for run in 1..=10 {
        let (was_direct, answer) = host.calls("look", json!({})).await;
        assert_eq!((was_direct, &answer["result"]["structuredContent"]["run"]), (true, &json!(run)));
    }
    let send = || host.asks_as(77, "tools/call", json!({ "name": "write", "arguments": {} }));
    let ((_, first), (was_direct, again)) = (send().await, send().await);
    assert!(was_direct);
    assert_eq!(again["result"]["structuredContent"], first["result"]["structuredContent"]);
    assert_eq!(again["result"]["_meta"]["toolwright/meta"]["replayed"], true);
    assert_eq!(served.runs(), 11);
    let other = host.asks_as(77, "tools/call", json!({ "name": "write", "arguments": { "more": 1 } })).await;
    assert_eq!(other.1["result"]["structuredContent"]["type"], "CONFLICT");
}

#[tokio::test]
async fn a_message_that_a_tool_left_is_told_with_the_next_retrieval() {
    let served = Served::start().await;
    let host = Host::of(&served).await;
    let intents = json!([{ "type": "SET_PENDING_MESSAGE", "message": "Welcome back." }]);
    let (was_direct, left) = host.calls("write", json!({ "intents": intents })).await;
    assert_eq!((was_direct, &left["result"]["isError"]), (true, &json!(false)));
    let (was_direct, answer) = host.calls("look", json!({})).await;
    assert!(was_direct);
    assert_eq!(answer["result"]["content"][1], json!({ "type": "text", "text": "Welcome back." }));
}

#[tokio::test]
async fn a_plain_call_in_a_session_is_cancelled_by_its_host() {
    let served = Served::start().await;
    let host = Host::of(&served).await;
    let call = json!({ "name": "read", "arguments": { "wait": true } });
    let cancel = async {
        until(|| served.runs() == 1).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 5, "reason": "no longer wanted" } });
        assert_eq!(host.client.post("/mcp", cancelled).await.status, 202);
    };
    let ((was_direct, answer), ()) = tokio::join!(host.asks_as(5, "tools/call", call), cancel);
    assert_eq!((was_direct, &answer["error"]["message"]), (true, &json!("The call was cancelled.")));
    until(|| served.at_work() == 0).await;
    let (was_direct, answer) = host.calls("echo", json!({ "message": "on" })).await;
    assert_eq!((was_direct, &answer["result"]["isError"]), (true, &json!(false)));
}

#[tokio::test]
async fn after_a_newer_toolset_was_listed_calls_are_its() {
    let served = Served::start().await;
    let host = Host::of(&served).await;
    let tools = vec![gives("gives_new", json!({ "is": "new" }), json!({}))];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    served.orchestrator.install(Runtime::builder(Arc::new(toolset), ".").build());
    let (was_direct, answer) = host.calls("echo", json!({ "message": "still" })).await;
    assert_eq!((was_direct, &answer["result"]["isError"]), (true, &json!(false)));
    host.asks("tools/list", json!({})).await;
    let (was_direct, answer) = host.calls("gives_new", json!({})).await;
    assert_eq!((was_direct, &answer["result"]["structuredContent"]["is"]), (false, &json!("new")));
    assert!(host.calls("echo", json!({ "message": "gone" })).await.1["error"].is_object());
}

#[tokio::test]
async fn a_plain_call_in_the_session_of_another_is_refused() {
    let served = Served::start().await;
    let (mira, eve) = (served.client_of("mira", &[]), served.client_of("eve", &[]));
    let host = Host::with(mira).await;
    let (was_direct, _) = host.calls("echo", json!({ "message": "hi" })).await;
    assert!(was_direct);
    let thief = eve.with("accept", ACCEPT).with("mcp-protocol-version", "2025-11-25");
    let thief = thief.with("mcp-session-id", host.session.clone());
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "write" } });
    assert_eq!(thief.post("/mcp", call).await.status, 404);
    assert_eq!(served.runs(), 1);
}

#[tokio::test]
async fn with_its_session_a_plain_call_ends_and_no_other_begins() {
    let served = Served::start().await;
    let host = Host::of(&served).await;
    let call = json!({ "name": "read", "arguments": { "wait": true } });
    let end = async {
        until(|| served.runs() == 1).await;
        assert_eq!(host.client.delete("/mcp").await.status, 204);
    };
    let ((was_direct, answer), ()) = tokio::join!(host.asks_as(5, "tools/call", call), end);
    assert_eq!((was_direct, &answer["error"]["message"]), (true, &json!("The call was cancelled.")));
    let late = json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": { "name": "write" } });
    assert_eq!(host.client.post("/mcp", late).await.status, 404);
    assert_eq!(served.runs(), 1);
}
