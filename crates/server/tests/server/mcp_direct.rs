//! Plain calls, which bypass the library: stateless ones get the same bytes as through the library, those in a session
//! the same result, where the library would open a stream.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use super::client::Client;
use super::mcp_http::{ACCEPT, initialize};
use super::support::{TestServer, tool, wait_until};

const VERSION: &str = "2026-07-28";

fn constant_tool(id: &str, data: Value, fields: Value) -> Tool {
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
        constant_tool("returns_object", nested.clone(), reads(Value::Null)),
        constant_tool("returns_text", json!("a \"text\"\n"), reads(Value::Null)),
        constant_tool("returns_list", json!([1, "two", 3.5]), reads(Value::Null)),
        constant_tool("returns_null", Value::Null, reads(Value::Null)),
        constant_tool("returns_declared", nested, reads(json!({ "type": "object" }))),
        constant_tool("returns_number", json!(7), reads(json!({ "type": "integer" }))),
        constant_tool("returns_wrong_type", json!("no number"), reads(json!({ "type": "integer" }))),
        constant_tool("writes", json!({ "done": true }), json!({})),
        constant_tool("staff_only", json!({}), json!({ "permissions": { "roles": ["staff"] } })),
        constant_tool("voice_only", json!({}), json!({ "allowedModes": ["voice"] })),
    ];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    Orchestrator::builder(Runtime::builder(Arc::new(toolset), ".").build()).build().unwrap()
}

/// Status, headers and body of a call. An unknown member `more` in `_meta` sends it through the library.
async fn call_stateless(
    server: &TestServer,
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
    let client = server.client.with("accept", "application/json, text/event-stream");
    let client =
        client.with("mcp-protocol-version", VERSION).with("mcp-method", "tools/call").with("mcp-name", tool);
    let response = client.post("/mcp", body).await;
    let mut reply: Value = response.json();
    // These differ from call to call.
    for own in ["executionId", "duration"] {
        if let Some(value) = reply.pointer_mut(&format!("/result/_meta/toolwright~1meta/{own}")) {
            *value = Value::Null;
        }
    }
    let is_compared = |line: &&str| {
        !line.starts_with("date") && !line.starts_with("x-request-id") && !line.starts_with("content-length")
    };
    let head = response.head.lines().skip(1).filter(is_compared).map(str::to_owned).collect();
    (response.status, head, reply.to_string())
}

const TOOLS: [&str; 12] = [
    "returns_object",
    "returns_text",
    "returns_list",
    "returns_null",
    "returns_declared",
    "returns_number",
    "returns_wrong_type",
    "writes",
    "staff_only",
    "voice_only",
    "reg_describe",
    "unknown",
];

#[tokio::test]
async fn a_plain_call_gets_the_same_bytes_as_through_the_library() {
    let server = TestServer::with_orchestrator(
        orchestrator(),
        Arc::default(),
        Arc::new(tokio::sync::Semaphore::new(0)),
    )
    .await;
    for tool in TOOLS {
        for args in [json!({}), json!({ "text": 1, "txt": "x" })] {
            let direct = call_stateless(&server, tool, &args, None).await;
            let library = call_stateless(&server, tool, &args, Some("x.example/other")).await;
            assert_eq!(direct, library, "{tool} {args}");
        }
    }
}

/// A host with a session, over plain HTTP.
pub struct SessionHost {
    client: Client,
    session: String,
    next: AtomicI64,
}

impl SessionHost {
    async fn new(server: &TestServer) -> Self {
        Self::with_client(server.client.clone()).await
    }

    pub async fn with_client(client: Client) -> Self {
        let client = client.with("accept", ACCEPT).with("mcp-protocol-version", "2025-11-25");
        let begun = client.post("/mcp", initialize()).await;
        let session = begun.header("mcp-session-id").unwrap().to_owned();
        let client = client.with("mcp-session-id", session.clone());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post("/mcp", initialized).await.status, 202);
        Self { client, session, next: AtomicI64::new(2) }
    }

    /// Whether the reply bypassed the library, and the reply.
    pub async fn send(&self, method: &str, params: Value) -> (bool, Value) {
        self.send_as(self.next.fetch_add(1, Ordering::Relaxed), method, params).await
    }

    async fn send_as(&self, id: i64, method: &str, params: Value) -> (bool, Value) {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = self.client.post("/mcp", body).await;
        assert_eq!(response.status, 200);
        let is_direct = response.header("content-type") == Some("application/json");
        let text = response.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| !data.is_empty());
        let answer: Value = serde_json::from_str(data.unwrap_or(text)).unwrap();
        assert_eq!(answer["id"], id);
        (is_direct, answer)
    }

    async fn call(&self, tool: &str, args: Value) -> (bool, Value) {
        self.send("tools/call", json!({ "name": tool, "arguments": args })).await
    }
}

#[tokio::test]
async fn a_plain_call_in_a_session_gets_the_same_result_as_through_the_library() {
    let server = TestServer::with_orchestrator(
        orchestrator(),
        Arc::default(),
        Arc::new(tokio::sync::Semaphore::new(0)),
    )
    .await;
    let host = SessionHost::new(&server).await;
    for tool in TOOLS {
        for args in [json!({}), json!({ "text": 1, "txt": "x" })] {
            let (was_direct, mut direct) = host.call(tool, args.clone()).await;
            let params = json!({ "name": tool, "arguments": args, "_meta": { "x.example/other": "x" } });
            let (was_library, mut library) = host.send("tools/call", params).await;
            // Tools that are not in the toolset go through the library.
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
async fn without_a_pause_every_call_begins_a_turn_and_a_resent_call_is_replayed() {
    let server = TestServer::with(|options| options.mcp_turn_idle = Duration::ZERO, None).await;
    let host = SessionHost::new(&server).await;
    for run in 1..=10 {
        let (was_direct, answer) = host.call("look", json!({})).await;
        assert_eq!((was_direct, &answer["result"]["structuredContent"]["run"]), (true, &json!(run)));
    }
    let send = || host.send_as(77, "tools/call", json!({ "name": "write", "arguments": {} }));
    let ((_, first), (was_direct, again)) = (send().await, send().await);
    assert!(was_direct);
    assert_eq!(again["result"]["structuredContent"], first["result"]["structuredContent"]);
    assert_eq!(again["result"]["_meta"]["toolwright/meta"]["replayed"], true);
    assert_eq!(server.runs(), 11);
    let other = host.send_as(77, "tools/call", json!({ "name": "write", "arguments": { "more": 1 } })).await;
    assert_eq!(other.1["result"]["structuredContent"]["type"], "CONFLICT");
}

#[tokio::test]
async fn a_pending_message_is_delivered_with_the_first_call_of_the_next_turn() {
    let server = TestServer::with(|options| options.mcp_turn_idle = Duration::ZERO, None).await;
    let host = SessionHost::new(&server).await;
    let intents = json!([{ "type": "SET_PENDING_MESSAGE", "message": "Welcome back." }]);
    let (was_direct, left) = host.call("write", json!({ "intents": intents })).await;
    assert_eq!((was_direct, &left["result"]["isError"]), (true, &json!(false)));
    let (was_direct, answer) = host.call("look", json!({})).await;
    assert!(was_direct);
    assert_eq!(answer["result"]["content"][1], json!({ "type": "text", "text": "Welcome back." }));
}

#[tokio::test]
async fn a_host_can_cancel_a_plain_call_in_its_session() {
    let server = TestServer::start().await;
    let host = SessionHost::new(&server).await;
    let call = json!({ "name": "read", "arguments": { "wait": true } });
    let cancel = async {
        wait_until(|| server.runs() == 1).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 5, "reason": "no longer wanted" } });
        assert_eq!(host.client.post("/mcp", cancelled).await.status, 202);
    };
    let ((was_direct, answer), ()) = tokio::join!(host.send_as(5, "tools/call", call), cancel);
    assert_eq!((was_direct, &answer["error"]["message"]), (true, &json!("The call was cancelled.")));
    wait_until(|| server.running_handlers() == 0).await;
    let (was_direct, answer) = host.call("echo", json!({ "message": "on" })).await;
    assert_eq!((was_direct, &answer["result"]["isError"]), (true, &json!(false)));
}

#[tokio::test]
async fn plain_calls_use_a_newer_toolset_once_it_was_listed() {
    let server = TestServer::start().await;
    let host = SessionHost::new(&server).await;
    let tools = vec![constant_tool("returns_new", json!({ "is": "new" }), json!({}))];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    server.orchestrator.install(Runtime::builder(Arc::new(toolset), ".").build());
    let (was_direct, answer) = host.call("echo", json!({ "message": "still" })).await;
    assert_eq!((was_direct, &answer["result"]["isError"]), (true, &json!(false)));
    host.send("tools/list", json!({})).await;
    let (was_direct, answer) = host.call("returns_new", json!({})).await;
    assert_eq!((was_direct, &answer["result"]["structuredContent"]["is"]), (true, &json!("new")));
    assert!(host.call("echo", json!({ "message": "gone" })).await.1["error"].is_object());
}

#[tokio::test]
async fn a_plain_call_in_the_session_of_another_principal_is_refused() {
    let server = TestServer::start().await;
    let (mira, eve) = (server.client_with_key("mira", &[]), server.client_with_key("eve", &[]));
    let host = SessionHost::with_client(mira).await;
    let (was_direct, _) = host.call("echo", json!({ "message": "hi" })).await;
    assert!(was_direct);
    let thief = eve.with("accept", ACCEPT).with("mcp-protocol-version", "2025-11-25");
    let thief = thief.with("mcp-session-id", host.session.clone());
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "write" } });
    assert_eq!(thief.post("/mcp", call).await.status, 404);
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn the_end_of_a_session_cancels_its_plain_calls() {
    let server = TestServer::start().await;
    let host = SessionHost::new(&server).await;
    let call = json!({ "name": "read", "arguments": { "wait": true } });
    let end = async {
        wait_until(|| server.runs() == 1).await;
        assert_eq!(host.client.delete("/mcp").await.status, 204);
    };
    let ((was_direct, answer), ()) = tokio::join!(host.send_as(5, "tools/call", call), end);
    assert_eq!((was_direct, &answer["error"]["message"]), (true, &json!("The call was cancelled.")));
    let late = json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": { "name": "write" } });
    assert_eq!(host.client.post("/mcp", late).await.status, 404);
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn a_name_that_is_given_twice_is_refused_on_every_path() {
    let server = TestServer::start().await;
    let host = SessionHost::new(&server).await;
    for arguments in [r#"{"message":"a","message":"b"}"#, r#"{"message":"a","more":[{"x":1,"x":1}]}"#] {
        let params = format!(r#"{{"name":"echo","arguments":{arguments}}}"#);
        let call = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let in_session = host.client.request("POST", "/mcp", &call).await;
        let stateless = server.client.with("accept", ACCEPT).with("mcp-protocol-version", VERSION);
        let stateless = stateless.with("mcp-method", "tools/call").with("mcp-name", "echo");
        let meta = format!(r#"{{"io.modelcontextprotocol/protocolVersion":"{VERSION}"}}"#);
        let call = call.replace(r#"{"name""#, &format!(r#"{{"_meta":{meta},"name""#));
        for refused in [in_session, stateless.request("POST", "/mcp", &call).await] {
            let reply = refused.expect(400);
            assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32600)), "{reply}");
            assert!(reply["error"]["message"].as_str().unwrap().contains("is given twice"), "{reply}");
        }
    }
    assert_eq!(server.runs(), 0);
}

#[tokio::test]
async fn arrays_for_objects_and_numbers_beyond_64_bits_are_refused_over_mcp() {
    let server = TestServer::start().await;
    let begun = server.client.with("accept", ACCEPT).post("/mcp", initialize()).await;
    let session = begun.header("mcp-session-id").unwrap();
    let client = server.client.with("accept", ACCEPT).with("mcp-session-id", session);
    let client = client.with("mcp-protocol-version", "2025-11-25");
    let message =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    for (body, expected) in [
        (message(r#"["echo",{"message":"hi"}]"#), "`params` must be an object, not an array"),
        (message(r#"{"name":"echo","arguments":[]}"#), "`arguments` must be an object, not an array"),
        (message(r#"{"name":"echo","arguments":{},"_meta":[]}"#), "`_meta` must be an object, not an array"),
        (
            message(
                r#"{"name":"echo","_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":[]}}}"#,
            ),
            "`elicitation` must be an object, not an array",
        ),
        (r#"["2.0",7,"tools/call",{"name":"echo"}]"#.to_owned(), "it must be an object, not an array"),
        (message(r#"{"name":"read","arguments":{"n":18446744073709551616}}"#), "needs more than 64 bits"),
    ] {
        let response = client.request("POST", "/mcp", &body).await;
        assert_eq!(response.status, 400, "{body}");
        let reply = response.json();
        assert!(reply["error"]["message"].as_str().unwrap().contains(expected), "{reply}");
    }
    assert_eq!(server.runs(), 0);
    let exact = message(r#"{"name":"read","arguments":{"n":18446744073709551615}}"#);
    assert!(client.request("POST", "/mcp", &exact).await.text().contains(r#""n":18446744073709551615"#));
}
