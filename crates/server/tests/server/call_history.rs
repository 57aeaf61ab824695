//! The calls that have ended: lists, one call, and the stream, for an admin and for others.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;

use super::client::Client;
use super::support::TestServer;

fn tools(page: &Value) -> Vec<&str> {
    page["calls"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect()
}

async fn page(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/calls{query}")).await.expect(200)
}

#[tokio::test]
async fn calls_are_listed_newest_first_with_filters_and_pages() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    for n in 0..5 {
        server.client.call("echo", json!({ "args": { "message": format!("{n}") } })).await;
    }
    server.client.call("echo", json!({ "args": {} })).await;
    server.client.call("write", json!({ "args": {}, "sessionId": session, "executionId": "c1" })).await;
    let all = page(&server.client, "").await;
    assert_eq!(tools(&all), ["write", "echo", "echo", "echo", "echo", "echo", "echo"]);
    let newest = &all["calls"][0];
    assert_eq!((&newest["executionId"], &newest["sessionId"]), (&json!("c1"), &json!(session)));
    assert_eq!((&newest["principal"], &newest["outcome"]), (&json!("local"), &json!("ok")));
    let first = page(&server.client, "?limit=3").await;
    let rest = page(&server.client, &format!("?limit=10&before={}", first["next"])).await;
    assert_eq!((tools(&first).len(), tools(&rest).len(), &rest["next"]), (3, 4, &Value::Null));
    assert_eq!(tools(&page(&server.client, "?tool=write").await), ["write"]);
    assert_eq!(tools(&page(&server.client, "?outcome=error").await), ["echo"]);
    assert_eq!(tools(&page(&server.client, "?outcome=VALIDATION&event=refused").await), ["echo"]);
    assert_eq!(tools(&page(&server.client, &format!("?sessionId={session}")).await), ["write"]);
    assert_eq!(tools(&page(&server.client, "?until=1").await), [""; 0]);
    server.client.get("/v1/calls?event=sung").await.problem(400, "must be one of called, refused");
    server.client.get("/v1/calls?before=x").await.problem(400, "`before`");
    server.client.get("/v1/calls?colour=red").await.problem(400, "colour");
}

#[tokio::test]
async fn a_call_is_read_with_arguments_steps_and_nested_calls() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let args = json!({ "call": "read", "with": { "n": 1 } });
    server.client.call("write", json!({ "args": args, "sessionId": session, "executionId": "c/1" })).await;
    let call = server.client.get(&format!("/v1/calls/c%2F1?sessionId={session}")).await.expect(200);
    assert_eq!((&call["args"], &call["record"]), (&args, &json!("stored")));
    assert_eq!(call["envelope"]["meta"]["executionId"], "c/1");
    let steps = call["entries"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.first().unwrap()["step"], "resolve");
    assert_eq!(steps.last().unwrap()["step"], "settle");
    assert_eq!((&call["nested"][0]["tool"], &call["nested"][0]["parent"]), (&json!("read"), &json!("c/1")));
    server.client.get("/v1/calls/c%2F1").await.problem(400, "sessionId");
    server.client.get(&format!("/v1/calls/other?sessionId={session}")).await.problem(404, "Call `");
}

#[tokio::test]
async fn others_see_only_their_own_calls_and_sessions() {
    let server = TestServer::start().await;
    let [ada, mira, admin] = [("ada", &[][..]), ("mira", &[]), ("root", &["admin"])]
        .map(|(name, roles)| server.client_with_key(name, roles));
    let secret = json!({ "args": { "to": "x", "password": "hunter22" }, "executionId": "c1" });
    let session = ada.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201);
    let session = session["sessionId"].as_str().unwrap().to_owned();
    let mut call = secret.clone();
    call["sessionId"] = json!(session);
    ada.call("send", call).await;
    mira.call("echo", json!({ "args": { "message": "x" } })).await;
    assert_eq!(tools(&page(&ada, "").await), ["send"]);
    assert_eq!(tools(&page(&mira, "").await), ["echo"]);
    assert_eq!(tools(&page(&admin, "").await), ["echo", "send"]);
    assert_eq!(tools(&page(&admin, "?principal=ada&org=studio").await), ["send"]);
    mira.get("/v1/calls?principal=ada").await.problem(403, "admin");
    let path = format!("/v1/calls/c1?sessionId={session}");
    mira.get(&path).await.problem(404, "Call `");
    for client in [&ada, &admin] {
        let found = client.get(&path).await;
        assert!(!found.text().contains("hunter22"), "{}", found.text());
        assert_eq!(found.expect(200)["args"], json!({ "to": "x", "password": "[redacted]" }));
    }
    let sessions = async |client: &Client| {
        let page = client.get("/v1/sessions").await.expect(200);
        page["sessions"].as_array().unwrap().len()
    };
    assert_eq!((sessions(&ada).await, sessions(&mira).await, sessions(&admin).await), (1, 0, 1));
    admin.get("/v1/sessions?before=x").await.problem(400, "`before`");
}

#[tokio::test]
async fn calls_are_streamed_to_those_who_may_see_them() {
    let server = TestServer::start().await;
    let [ada, mira, admin] = [("ada", &[][..]), ("mira", &[]), ("root", &["admin"])]
        .map(|(name, roles)| server.client_with_key(name, roles));
    let mut own = events(&ada).await;
    let mut all = events(&admin).await;
    mira.call("echo", json!({ "args": { "message": "of mira" } })).await;
    ada.call("read", json!({ "args": {} })).await;
    assert_eq!(next_tool(&mut own).await, "read");
    assert_eq!(next_tool(&mut all).await, "echo");
    assert_eq!(next_tool(&mut all).await, "read");
}

type Lines = tokio::io::Lines<BufReader<TcpStream>>;

/// The lines of the stream, after its first heartbeat.
async fn events(client: &Client) -> Lines {
    let mut lines = BufReader::new(client.send("GET", "/v1/call-events", "").await).lines();
    while !lines.next_line().await.unwrap().unwrap().starts_with(": still here") {}
    lines
}

/// The tool of the next call in the stream.
async fn next_tool(lines: &mut Lines) -> String {
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            let call: Value = serde_json::from_str(data).unwrap();
            return call["tool"].as_str().unwrap().to_owned();
        }
    }
}
