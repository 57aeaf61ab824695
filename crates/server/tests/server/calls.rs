//! `POST /v1/tools/{toolId}/call`, and the lists of tools.

use serde_json::json;

use super::support::{TestServer, wait_until};

#[tokio::test]
async fn a_call_is_answered_with_its_envelope() {
    let server = TestServer::start().await;
    let envelope =
        server.client.call("echo", json!({ "args": { "message": "hi" }, "executionId": "call_1" })).await;
    assert_eq!(envelope["ok"], true);
    assert_eq!(envelope["data"]["args"], json!({ "message": "hi", "times": 1 }));
    assert_eq!(envelope["meta"]["executionId"], "call_1");
    let refused = server.client.call("echo", json!({ "args": { "massage": "hi" } })).await;
    assert_eq!(refused["error"]["type"], "VALIDATION");
    assert!(refused["error"]["message"].as_str().unwrap().contains("did you mean `message`?"));
    let unknown = server.client.call("ehco", json!({ "args": {} })).await;
    assert_eq!(unknown["error"]["type"], "NOT_FOUND");
    assert_eq!(unknown["error"]["suggestion"], "Did you mean `echo`?");
    let without = server.client.request("POST", "/v1/tools/read/call", "").await.expect(200);
    assert_eq!(without["data"]["args"], json!({}));
    let described = server.client.call("reg_describe", json!({ "args": { "tool": "echo" } })).await;
    assert_eq!(described["ok"], true, "{described}");
}

#[tokio::test]
async fn calls_of_a_session_share_its_budget_and_its_records() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let call = |id: &str| json!({ "sessionId": session, "executionId": id, "args": {} });
    let first = server.client.call("write", call("a")).await;
    let again = server.client.call("write", call("a")).await;
    assert_eq!((&first["data"]["run"], &again["data"]["run"]), (&1.into(), &1.into()));
    assert_eq!(again["meta"]["replayed"], true);
    for number in 0..5 {
        assert_eq!(server.client.call("look", call(&format!("look{number}"))).await["ok"], true);
    }
    assert_eq!(server.client.call("look", call("look5")).await["error"]["type"], "BUDGET_EXCEEDED");
    let turn = server.client.post(&format!("/v1/sessions/{session}/turn"), json!({})).await.expect(200);
    assert_eq!(turn, json!({ "turn": 1, "message": null }));
    assert_eq!(server.client.call("look", call("look5")).await["ok"], true);
}

#[tokio::test]
async fn a_call_without_a_session_gets_its_own_session() {
    let server = TestServer::start().await;
    for _ in 0..7 {
        assert_eq!(server.client.call("look", json!({ "args": {} })).await["ok"], true);
    }
    let voice = server
        .client
        .call(
            "read",
            json!({ "args": { "intents": [{ "type": "END_VOICE_SESSION", "after": "current_turn" }] } }),
        )
        .await;
    assert_eq!(voice["meta"]["refusedIntents"][0]["reason"], "this is not a voice session");
    let nested = server
        .client
        .call("read", json!({ "args": { "call": "echo", "with": { "message": "deep" } } }))
        .await;
    assert_eq!(nested["data"]["data"]["args"]["message"], "deep", "{nested}");
}

#[tokio::test]
async fn a_resent_write_runs_once_even_without_a_session() {
    let server = TestServer::start().await;
    let call = json!({ "executionId": "order-7", "args": { "x": 1 } });
    let first = server.client.call("write", call.clone()).await;
    let again = server.client.call("write", call).await;
    assert_eq!((&again["meta"]["replayed"], &again["data"]), (&true.into(), &first["data"]));
    assert_eq!(server.runs(), 1);
    let other = server.client.call("write", json!({ "executionId": "order-7", "args": { "x": 2 } })).await;
    assert_eq!(other["error"]["type"], "CONFLICT");
    let mira = server.client_with_key("mira", &[]);
    let hers = mira.call("write", json!({ "executionId": "order-7", "args": { "x": 2 } })).await;
    assert_eq!(hers["ok"], true, "another principal's ids are others: {hers}");
}

#[tokio::test]
async fn all_calls_are_in_the_audit_log() {
    let server = TestServer::start().await;
    server.client.call("echo", json!({ "args": { "message": "hi" } })).await;
    server.client.call("write", json!({ "args": {} })).await;
    server.client.call("nothing", json!({ "args": {} })).await;
    let page = server.client.get("/v1/audit").await.expect(200);
    let entries = page["entries"].as_array().unwrap();
    let outcomes: Vec<_> =
        entries.iter().map(|row| (&row["entry"]["tool"], &row["entry"]["outcome"])).collect();
    let expected =
        [("echo", "ok"), ("write", "ok"), ("nothing", "NOT_FOUND")].map(|(a, b)| (json!(a), json!(b)));
    assert_eq!(outcomes, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
    assert!(entries.iter().all(|row| row["entry"]["clientId"] == "local"));
    let rest =
        server.client.get(&format!("/v1/audit?after={}&limit=1", entries[0]["number"])).await.expect(200);
    assert_eq!(rest["entries"][0]["entry"]["tool"], "write");
    server.client.get("/v1/audit?limit=1001").await.problem(400, "up to 1000");
}

#[tokio::test]
async fn the_audit_log_is_searched_by_who_did_what() {
    let server = TestServer::start().await;
    let mira = server.client_with_key("mira", &[]);
    let grace = server.client_with_key("grace", &["admin"]);
    mira.call("echo", json!({ "args": { "message": "hi" } })).await;
    let asked = mira.call("send", json!({ "args": { "to": "ada", "password": "hunter2" } })).await;
    let id =
        asked["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap().to_owned();
    let edited = json!({ "args": { "to": "jon", "password": "hunter2" } });
    grace.post(&format!("/v1/confirmations/{id}/approve"), edited).await.expect(200);
    grace.call("write", json!({ "args": {} })).await;

    let search = async |query: &str| {
        let page = grace.get(&format!("/v1/audit?{query}")).await.expect(200);
        let event = |row: &serde_json::Value| row["entry"]["event"].as_str().unwrap().to_owned();
        page["entries"].as_array().unwrap().iter().map(event).collect::<Vec<_>>()
    };
    assert_eq!(search("principal=mira&org=studio").await, ["called", "approved", "refused", "called"]);
    assert_eq!(search("client=grace").await, ["called"]);
    assert_eq!(search("org=studio&tool=send").await, ["called", "approved", "refused"]);
    assert_eq!(search("approver=grace").await, ["called", "approved"]);
    assert_eq!(search("approver=grace&event=approved&edited=true").await, ["approved"]);
    assert_eq!(search("approver=nobody").await, [""; 0]);
    assert_eq!(search("until=1").await, [""; 0]);
    let newest = grace.get("/v1/audit?approver=grace&limit=1").await.expect(200);
    let entry = &newest["entries"][0]["entry"];
    assert_eq!(entry["edits"], json!([{ "path": "/to", "from": "ada", "to": "jon" }]));
    assert_eq!(entry["approver"], json!({ "id": "grace", "org": "studio", "via": "transport" }));
    let next = format!("approver=grace&before={}", newest["next"]);
    assert_eq!(search(&next).await, ["approved"]);
    grace.get("/v1/audit?approver=grace&after=1").await.problem(400, "`before`");
    grace.get("/v1/audit?edited=yes").await.problem(400, "`edited`");
}

#[tokio::test]
async fn invalid_bodies_get_an_explanation() {
    let server = TestServer::start().await;
    let request = async |body: &str| server.client.request("POST", "/v1/tools/echo/call", body).await;
    let problem = request("{\n  \"args\": {,}\n}").await.problem(400, "line 2 column 12");
    assert_eq!((&problem["line"], &problem["column"]), (&2.into(), &12.into()));
    request(r#"{"arg": {}}"#).await.problem(400, "There is no field `arg`: did you mean `args`?");
    request(r#"{"session_id": "x"}"#).await.problem(400, "did you mean `sessionId`?");
    request(r#"{"args": {}, "args": {}}"#).await.problem(400, "duplicate field");
    request(r#"{"mode": "smell"}"#).await.problem(400, "smell");
    request("[]").await.problem(400, "");
    request("nonsense").await.problem(400, "");
    request(r#"{"sessionId": "sess_none", "args": {}}"#).await.problem(404, "Session `sess_none` not found.");
    let voice = server.session("voice").await;
    request(&json!({ "sessionId": voice, "mode": "text" }).to_string()).await.problem(409, "mode is voice");
    let form = server.client.with("content-type", "application/x-www-form-urlencoded");
    form.request("POST", "/v1/tools/echo/call", "a=b").await.problem(415, "application/json");
    let charset = server.client.with("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(charset.call("echo", json!({ "args": { "message": "x" } })).await["ok"], true);
}

#[tokio::test]
async fn tools_are_listed_and_described() {
    let server = TestServer::start().await;
    let list = server.client.get("/v1/tools").await.expect(200);
    let ids: Vec<_> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["toolId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["echo", "look", "read", "write", "send", "reg_describe"]);
    let some = server.client.get("/v1/tools?category=retrieval&mode=voice").await.expect(200);
    assert_eq!(some["tools"].as_array().unwrap().len(), 1);
    server.client.get("/v1/tools?category=retreival").await.problem(400, "did you mean `retrieval`?");
    server.client.get("/v1/tools?kind=x").await.problem(400, "There is no query parameter `kind`");
    let whole = server.client.get("/v1/tools/echo").await.expect(200);
    assert_eq!(whole["parameters"]["required"], json!(["message"]));
    server.client.get("/v1/tools/eco").await.problem(404, "Tool `eco` not found. Did you mean `echo`?");
}

#[tokio::test]
async fn a_disconnect_cancels_a_read_but_not_a_write() {
    let server = TestServer::start().await;
    let waiting = json!({ "args": { "wait": true }, "executionId": "w" }).to_string();
    // Wait until the handler runs: an earlier disconnect would cancel the call before it starts.
    let stream = server.client.send("POST", "/v1/tools/read/call", &waiting).await;
    wait_until(|| server.runs() == 1).await;
    drop(stream);
    let stream = server.client.send("POST", "/v1/tools/write/call", &waiting).await;
    wait_until(|| server.runs() == 2).await;
    drop(stream);
    server.permits.add_permits(1);
    assert!(server.orchestrator.wait_until_idle(std::time::Duration::from_secs(30)).await);
    let again = server.client.call("write", json!({ "args": { "wait": true }, "executionId": "w" })).await;
    assert_eq!((&again["meta"]["replayed"], server.runs()), (&true.into(), 2));
}

#[tokio::test]
async fn arguments_that_are_given_twice_are_refused() {
    let server = TestServer::start().await;
    for body in [
        r#"{"args": {"message": "a", "message": "b"}}"#,
        r#"{"args": {"message": "a", "more": [{"message": 1, "message": 1}]}}"#,
    ] {
        let problem = server.client.request("POST", "/v1/tools/echo/call", body).await.problem(400, "twice");
        assert_eq!(problem["line"], 1);
    }
    let body = r#"{"args": {"message": "a"}, "args": {"message": "b"}}"#;
    server.client.request("POST", "/v1/tools/echo/call", body).await.problem(400, "duplicate");
    assert_eq!(server.runs(), 0);
    let whole = json!({ "message": "ä\n", "times": 3, "more": [null, true, -1, 1.5, 1e300, {}, []] });
    let envelope = server.client.call("read", json!({ "args": whole })).await;
    assert_eq!(envelope["data"]["args"], whole);
}
