//! `/v1/sessions`, and their events.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::support::TestServer;

#[tokio::test]
async fn a_session_is_created_read_and_ended() {
    let server = TestServer::start().await;
    let made = server
        .client
        .post("/v1/sessions", json!({ "mode": "voice", "clientId": "phone-7" }))
        .await
        .expect(201);
    assert_eq!(
        (&made["mode"], &made["clientId"], &made["standing"]),
        (&"voice".into(), &"phone-7".into(), &"active".into())
    );
    let path = format!("/v1/sessions/{}", made["sessionId"].as_str().unwrap());
    assert_eq!(server.client.get(&path).await.expect(200), made);
    server.client.delete(&path).await.expect(204);
    assert_eq!(server.client.get(&path).await.expect(200)["standing"], "ended");
    let late = server
        .client
        .call("echo", json!({ "sessionId": made["sessionId"], "args": { "message": "x" } }))
        .await;
    assert_eq!(late["error"]["type"], "SESSION_INACTIVE");
    server.client.get("/v1/sessions/sess_none").await.problem(404, "Session `sess_none` not found.");
    server.client.post("/v1/sessions", json!({})).await.problem(400, "missing field `mode`");
    server
        .client
        .post("/v1/sessions", json!({ "mode": "text", "clientID": "x" }))
        .await
        .problem(400, "did you mean `clientId`?");
    server
        .client
        .post("/v1/sessions", json!({ "mode": "text", "clientId": "x".repeat(300) }))
        .await
        .problem(422, "256");
}

#[tokio::test]
async fn all_event_streams_of_a_session_receive_its_events() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let stream = server.client.send("GET", &format!("/v1/sessions/{session}/events"), "").await;
        let mut lines = BufReader::new(stream).lines();
        while lines.next_line().await.unwrap().unwrap() != "\u{3a} still here" {}
        streams.push(lines);
    }
    // A stream that has ended silences no other.
    drop(streams.remove(1));
    let text = json!({ "type": "toast", "text": "hello" });
    server
        .client
        .call("write", json!({ "sessionId": session, "args": { "progress": [0.5], "send": text } }))
        .await;
    for lines in &mut streams {
        let mut events = Vec::new();
        while events.len() < 2 {
            let line = lines.next_line().await.unwrap().expect("the stream goes on");
            events.extend(line.strip_prefix("event: ").map(str::to_owned));
        }
        assert_eq!(events, ["progress", "message"]);
    }
}

#[tokio::test]
async fn events_of_a_session_are_streamed() {
    let mut server = TestServer::start().await;
    let session = server.session("text").await;
    let stream = server.client.send("GET", &format!("/v1/sessions/{session}/events"), "").await;
    let mut lines = BufReader::new(stream).lines();
    while lines.next_line().await.unwrap().unwrap() != "\u{3a} still here" {}
    let refused = server.client.call("send", json!({ "sessionId": session, "args": { "to": "mira" } })).await;
    let id =
        refused["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap().to_owned();
    server.client.post(&format!("/v1/confirmations/{id}/approve"), json!({})).await.expect(200);
    let mut data = None;
    while data.is_none() {
        let line = lines.next_line().await.unwrap().expect("the stream goes on");
        data =
            line.strip_prefix("data: ").map(|data| serde_json::from_str::<serde_json::Value>(data).unwrap());
    }
    let data = data.unwrap();
    assert_eq!(
        (&data["envelope"]["ok"], &data["executionId"]),
        (&true.into(), &refused["meta"]["executionId"])
    );
    server.request_shutdown();
    while lines.next_line().await.unwrap().is_some() {}
    assert!(server.wait_for_shutdown().await, "an open stream delayed the shutdown");
}
