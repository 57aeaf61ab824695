//! A tool that a session may not use is in no list, view or prompt of the session, over any wire.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ArgumentInfo, CompleteRequestParams, Reference};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

use super::client::Client;
use super::mcp_host::{Host, REVISIONS, Revision, TestHost, call, connect_http, connect_stdio};
use super::mcp_http::{ACCEPT, initialize};
use super::support::{TestServer, orchestrator_of, tool, wait_until};

const SOON: Duration = Duration::from_secs(20);

/// `open` and `by_argument` are for everyone, the others for some sessions.
async fn start() -> TestServer {
    let (runs, permits) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let when = |condition: &str| json!({ "availability": { "condition": condition } });
    let tools = vec![
        tool("open", &json!({})),
        tool("for_staff", &json!({ "permissions": { "roles": ["staff"] } })),
        tool("in_voice", &json!({ "allowedModes": ["voice"] })),
        tool("for_studio", &when("user.org == \"studio\" && user.id != \"guest\"")),
        tool("when_unlocked", &when("has(session.state.unlocked) && session.state.unlocked")),
        tool("never", &when("1 / 0 == 1")),
        tool("by_argument", &when("args.amount < 10")),
        tool("with_message", &when("has(session.state.pendingMessage)")),
    ];
    let orchestrator = orchestrator_of(tools, &runs, &permits, |builder| builder);
    TestServer::with_orchestrator(orchestrator, runs, permits).await
}

fn ids(list: &Value, pointer: &str) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool.pointer(pointer).unwrap().as_str().unwrap().to_owned()).collect()
}

/// The tools of a session, the same in its list, its views and its prompt.
async fn tools_of(client: &Client, query: &str) -> Vec<String> {
    let listed = ids(&client.get(&format!("/v1/tools?{query}")).await.expect(200), "/toolId");
    for (provider, pointer) in
        [("openai-chat", "/function/name"), ("anthropic", "/name"), ("ollama", "/function/name")]
    {
        let view = client.get(&format!("/v1/tools?provider={provider}&{query}")).await.expect(200);
        assert_eq!(ids(&view, pointer), listed, "{provider}");
    }
    let prompt = client.get(&format!("/v1/prompt?{query}")).await.expect(200);
    let prompt = prompt["prompt"].as_str().unwrap().to_owned();
    let named: Vec<_> = prompt.split("\n\n**").skip(1).map(|line| line.split("**").next().unwrap()).collect();
    assert_eq!(named, listed, "{prompt}");
    listed
}

#[tokio::test]
async fn lists_views_and_prompts_have_the_tools_of_the_session_alone() {
    let server = start().await;
    let (guest, staff) = (server.client_with_key("guest", &[]), server.client_with_key("mira", &["staff"]));
    assert_eq!(tools_of(&guest, "mode=text").await, ["open", "by_argument", "reg_describe"]);
    assert_eq!(tools_of(&guest, "mode=voice").await, ["open", "in_voice", "by_argument", "reg_describe"]);
    let expected = ["open", "for_staff", "for_studio", "by_argument", "reg_describe"];
    assert_eq!(tools_of(&staff, "mode=text").await, expected);
    let admin = server.client_with_key("root", &["admin"]);
    let new = json!({ "mode": "voice", "sessionId": "s1", "state": { "unlocked": true } });
    admin.post("/v1/sessions", new).await.expect(201);
    let expected = ["open", "in_voice", "for_studio", "when_unlocked", "by_argument", "reg_describe"];
    assert_eq!(tools_of(&admin, "sessionId=s1").await, expected);
    let all = ids(&admin.get("/v1/tools?all=true").await.expect(200), "/toolId");
    assert_eq!(all.len(), 9, "an admin can list every tool: {all:?}");
    guest.get("/v1/tools?all=true").await.problem(403, "admin");
    guest.get("/v1/tools?sessionId=s1").await.problem(404, "Session `s1` not found.");
    guest.get("/v1/tools/for_staff").await.problem(404, "");
    guest.get("/v1/prompt?mode=txt").await.problem(400, "did you mean `text`?");
    guest.get("/v1/tools?provider=openai").await.problem(400, "`openai-chat`");
    guest.post("/v1/sessions", json!({ "mode": "text", "sessionId": "mine" })).await.problem(403, "admin");
    admin.post("/v1/sessions", json!({ "mode": "text", "sessionId": "s1" })).await.problem(409, "already");
}

#[tokio::test]
async fn a_hidden_tool_is_refused_not_described_and_not_suggested() {
    let server = start().await;
    let guest = server.client_with_key("guest", &[]);
    for (hidden, kind) in [
        ("for_staff", "AUTH"),
        ("in_voice", "MODE_RESTRICTED"),
        ("for_studio", "UNAVAILABLE"),
        ("never", "UNAVAILABLE"),
    ] {
        assert_eq!(guest.call(hidden, json!({})).await["error"]["type"], kind);
        let described = guest.call("reg_describe", json!({ "args": { "tool": hidden } })).await;
        assert_eq!(described["error"]["type"], kind);
    }
    let unknown = guest.call("for_staf", json!({})).await;
    assert_eq!(unknown["error"]["type"], "NOT_FOUND");
    assert!(!unknown.to_string().contains("for_staff"), "{unknown}");
    assert_eq!(guest.call("by_argument", json!({ "args": { "amount": 3 } })).await["ok"], true);
    assert_eq!(
        guest.call("by_argument", json!({ "args": { "amount": 30 } })).await["error"]["type"],
        "UNAVAILABLE"
    );
}

#[tokio::test]
async fn mcp_hosts_see_the_tools_of_their_session_alone() {
    let server = start().await;
    let key = server.create_key("guest", &[]);
    for revision in REVISIONS {
        let host = connect_http(server.client.address, Some(&key), revision, TestHost::answering(None)).await;
        let tools = host.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["open", "by_argument", "reg_describe"], "{revision:?}");
        assert_eq!(host.list_all_resources().await.unwrap().len(), 2);
        // Nor are the names of others completed.
        for (beginning, expected) in
            [("", &names[..]), ("for_", &[][..]), ("in_", &[][..]), ("o", &["open"][..])]
        {
            let (reference, argument) =
                (Reference::for_resource("tool://{id}/doc"), ArgumentInfo::new("id", beginning));
            let completed = host.complete(CompleteRequestParams::new(reference, argument)).await.unwrap();
            assert_eq!(sorted(completed.completion.values), sorted(expected), "{revision:?} {beginning}");
        }
    }
}

fn sorted(names: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    names.sort_unstable();
    names
}

async fn names(host: &Host) -> Vec<String> {
    host.list_all_tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}

#[tokio::test]
async fn a_host_is_notified_when_the_state_of_its_session_changes_what_it_may_use() {
    let server = start().await;
    let key = server.create_key("guest", &[]);
    let (over_http, over_stdio) = (TestHost::answering(None), TestHost::answering(None));
    let http = connect_http(server.client.address, Some(&key), Revision::Session, over_http.clone()).await;
    let stdio = connect_stdio(server.orchestrator.clone(), Revision::Session, over_stdio.clone()).await;
    for (host, received) in [(http, over_http), (stdio, over_stdio)] {
        let changes = || *received.list_changes.lock().unwrap();
        assert!(!names(&host).await.contains(&"with_message".to_owned()));
        call(&host, "open", json!({})).await.unwrap();
        let intents = json!([{ "type": "SET_PENDING_MESSAGE", "message": "Welcome back." }]);
        call(&host, "open", json!({ "intents": intents })).await.unwrap();
        wait_until(|| changes() == 1).await;
        assert!(names(&host).await.contains(&"with_message".to_owned()));
        host.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn a_host_is_notified_when_another_key_of_its_user_has_other_roles() {
    let server = start().await;
    let staff = server.client_with_key("mira", &["staff"]).with("accept", ACCEPT);
    let begun = staff.post("/mcp", initialize()).await;
    let in_session = |client: &Client| {
        let client = client.with("accept", ACCEPT).with("mcp-protocol-version", "2025-11-25");
        client.with("mcp-session-id", begun.header("mcp-session-id").unwrap().to_owned())
    };
    let mut stream = in_session(&staff).send("GET", "/mcp", "").await;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    in_session(&staff).post("/mcp", initialized).await.expect(202);
    let other = in_session(&server.client_with_key("mira", &[]));
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
    assert!(!other.post("/mcp", list).await.text().contains("for_staff"));
    let mut received = String::new();
    while !received.contains("notifications/tools/list_changed") {
        let mut part = [0; 4096];
        let length = tokio::time::timeout(SOON, stream.read(&mut part)).await.unwrap().unwrap();
        assert!(length > 0, "{received}");
        received.push_str(&String::from_utf8_lossy(&part[..length]));
    }
}
