//! A tool that a session may not use is in no list, view or prompt of the session, over any wire.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::client::Client;
use super::mcp_host::{REVISIONS, TestHost, connect_http};
use super::support::{TestServer, orchestrator_of, tool};

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
    assert_eq!(all.len(), 8, "an operator can list every tool: {all:?}");
    guest.get("/v1/tools?all=true").await.problem(403, "admin");
    guest.get("/v1/tools?sessionId=s1").await.problem(404, "session");
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
    }
}
