//! The roles of whoever asks now decide, not those that a session began with; streams end with the key that opened
//! them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::chat::{ChatServer, message};
use super::client::Client;
use super::mcp_http::{ACCEPT, initialize};
use super::support::TestServer;

const SOON: Duration = Duration::from_secs(20);

/// Revokes all keys, and returns a client with a new key of the same principal.
fn successor(server: &TestServer, name: &str, roles: &[&str]) -> Client {
    for key in server.keys.list().unwrap() {
        server.keys.revoke(&key.id).unwrap();
    }
    server.client_with_key(name, roles)
}

async fn create_session(client: &Client) -> Value {
    client.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201)["sessionId"].clone()
}

#[tokio::test]
async fn a_successor_without_the_role_cannot_use_the_tools_of_an_old_session() {
    let server = TestServer::start().await;
    let staff = server.client_with_key("mira", &["staff"]);
    let session = create_session(&staff).await;
    let call = |id: &str| json!({ "sessionId": session, "executionId": id, "args": {} });
    assert_eq!(staff.call("staff_only", call("a")).await["ok"], true);
    let nested = json!({ "sessionId": session, "args": { "call": "staff_only", "with": {} } });
    assert_eq!(staff.call("write", nested.clone()).await["data"]["ok"], true);
    let plain = successor(&server, "mira", &[]);
    assert_eq!(plain.call("staff_only", call("b")).await["error"]["type"], "AUTH");
    let through_handler = plain.call("write", {
        let mut nested = nested.clone();
        nested["executionId"] = "c".into();
        nested
    });
    assert_eq!(
        through_handler.await["data"]["error"]["type"],
        "AUTH",
        "a nested call has its caller's roles"
    );
    let described = json!({ "sessionId": session, "args": { "tool": "staff_only" } });
    assert_eq!(plain.call("reg_describe", described).await["error"]["type"], "AUTH");
    let again = successor(&server, "mira", &["staff"]);
    assert_eq!(again.call("staff_only", call("d")).await["ok"], true, "and a successor with the role can");
}

/// A session over MCP: its id.
async fn initialize_mcp(client: &Client) -> String {
    let begun = client.with("accept", ACCEPT).post("/mcp", initialize()).await;
    assert_eq!(begun.status, 200);
    begun.header("mcp-session-id").unwrap().to_owned()
}

/// A call of `staff_only` over MCP; `meta` sends it through the library.
async fn call_mcp(client: &Client, session: &str, id: u32, meta: Value) -> Value {
    let mut body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "staff_only", "arguments": {} } });
    if meta.is_object() {
        body["params"]["_meta"] = meta;
    }
    let client = client.with("accept", ACCEPT).with("mcp-session-id", session);
    let response = client.with("mcp-protocol-version", "2025-11-25").post("/mcp", body).await;
    let text = response.text();
    let data =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| data.contains("jsonrpc"));
    serde_json::from_str(data.unwrap_or(text)).unwrap()
}

#[tokio::test]
async fn over_mcp_too_the_roles_of_the_request_decide() {
    let server = TestServer::start().await;
    let staff = server.client_with_key("mira", &["staff"]);
    let session = initialize_mcp(&staff).await;
    for (id, meta) in [(10, Value::Null), (11, json!({ "other": 1 }))] {
        let reply = call_mcp(&staff, &session, id, meta).await;
        assert_eq!(reply["result"]["isError"], false, "{reply}");
    }
    let plain = successor(&server, "mira", &[]);
    for (id, meta) in [(20, Value::Null), (21, json!({ "other": 1 }))] {
        let reply = call_mcp(&plain, &session, id, meta).await;
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert!(reply.to_string().contains("AUTH"), "{reply}");
    }
}

#[tokio::test]
async fn an_approval_needs_the_role_that_the_tool_requires() {
    let server = TestServer::with_confirmed_staff_tool().await;
    let staff = server.client_with_key("mira", &["staff"]);
    let session = create_session(&staff).await;
    let ask = |id: &str| json!({ "sessionId": session, "executionId": id, "args": {} });
    let confirmation = |refused: Value| {
        let token = refused["error"]["details"]["confirmation_request"]["confirmation_token"].clone();
        token.as_str().unwrap_or_else(|| panic!("{refused}")).to_owned()
    };
    let first = confirmation(staff.call("staff_send", ask("a")).await);
    let second = confirmation(staff.call("staff_send", ask("b")).await);
    let plain = successor(&server, "mira", &[]);
    let approve = |id: &str| format!("/v1/confirmations/{id}/approve");
    plain.post(&approve(&first), json!({})).await.problem(403, "may not use the tool `staff_send`");
    assert_eq!(server.runs(), 0);
    let again = server.client_with_key("mira", &["staff"]);
    assert_eq!(again.post(&approve(&first), json!({})).await.expect(200)["ok"], true);
    let admin = server.client_with_key("root", &["admin"]);
    assert_eq!(admin.post(&approve(&second), json!({})).await.expect(200)["ok"], true, "admins vouch");
}

#[tokio::test]
async fn a_session_without_the_role_runs_what_its_present_caller_may_use_after_approval() {
    let server = TestServer::with_confirmed_staff_tool().await;
    let plain = server.client_with_key("mira", &[]);
    let session = create_session(&plain).await;
    let staff = server.client_with_key("mira", &["staff"]);
    let asked = staff.call("staff_send", json!({ "sessionId": session, "args": {} })).await;
    let id = asked["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
    let admin = server.client_with_key("root", &["admin"]);
    let envelope = admin.post(&format!("/v1/confirmations/{id}/approve"), json!({})).await.expect(200);
    assert_eq!(envelope["ok"], true, "{envelope}");
}

#[tokio::test]
async fn streams_end_when_their_key_is_revoked() {
    let server = TestServer::start().await;
    let mira = server.client_with_key("mira", &[]);
    let session = create_session(&mira).await;
    let mcp_session = initialize_mcp(&mira).await;
    let events = mira.send("GET", &format!("/v1/sessions/{}/events", session.as_str().unwrap()), "").await;
    let host = mira.with("accept", ACCEPT).with("mcp-session-id", mcp_session);
    let listening = host.with("mcp-protocol-version", "2025-11-25").send("GET", "/mcp", "").await;
    // Of calls, for the principal and for admins.
    let admin = server.client_with_key("root", &["admin"]);
    let calls = mira.send("GET", "/v1/call-events", "").await;
    let all_calls = admin.send("GET", "/v1/call-events", "").await;
    let mut streams = [events, listening, calls, all_calls];
    for stream in &mut streams {
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert!(status.ends_with(b"200"), "{}", String::from_utf8_lossy(&status));
    }
    let _other = successor(&server, "mira", &[]);
    for mut stream in streams {
        let mut rest = Vec::new();
        timeout(SOON, stream.read_to_end(&mut rest)).await.expect("the stream ends").unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "it ends in order");
        stream.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_revoked_key_ends_the_stream_of_an_answer() {
    let server = ChatServer::start().await;
    let mira = server.server.client_with_key("mira", &[]);
    let body = message("c1", "m1", "wait").to_string();
    let mut lines = BufReader::new(mira.send("POST", "/api/chat", &body).await).lines();
    while !lines.next_line().await.unwrap().unwrap().contains("begun") {}
    for key in server.server.keys.list().unwrap() {
        server.server.keys.revoke(&key.id).unwrap();
    }
    // The model is still answering: only the key ends the stream.
    timeout(SOON, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            assert!(!line.contains("ended"), "{line}");
        }
    })
    .await
    .expect("the stream ends");
    assert_eq!(mira.get("/api/chat/c1/messages").await.status, 401);
}
