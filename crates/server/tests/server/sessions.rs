//! `/v1/sessions`, and the events that reach them.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::support::Served;

#[tokio::test]
async fn a_session_is_begun_looked_at_and_ended() {
    let served = Served::start().await;
    let made = served
        .client
        .post("/v1/sessions", json!({ "mode": "voice", "clientId": "phone-7" }))
        .await
        .expect(201);
    assert_eq!(
        (&made["mode"], &made["clientId"], &made["standing"]),
        (&"voice".into(), &"phone-7".into(), &"active".into())
    );
    let path = format!("/v1/sessions/{}", made["sessionId"].as_str().unwrap());
    assert_eq!(served.client.get(&path).await.expect(200), made);
    served.client.delete(&path).await.expect(204);
    assert_eq!(served.client.get(&path).await.expect(200)["standing"], "ended");
    let late = served
        .client
        .call("echo", json!({ "sessionId": made["sessionId"], "args": { "message": "x" } }))
        .await;
    assert_eq!(late["error"]["type"], "SESSION_INACTIVE");
    served.client.get("/v1/sessions/sess_none").await.problem(404, "no such session");
    served.client.post("/v1/sessions", json!({})).await.problem(400, "missing field `mode`");
    served
        .client
        .post("/v1/sessions", json!({ "mode": "text", "clientID": "x" }))
        .await
        .problem(400, "did you mean `clientId`?");
    served
        .client
        .post("/v1/sessions", json!({ "mode": "text", "clientId": "x".repeat(300) }))
        .await
        .problem(422, "256");
}

#[tokio::test]
async fn what_reaches_a_session_unasked_is_streamed() {
    let mut served = Served::start().await;
    let session = served.session("text").await;
    let stream = served.client.send("GET", &format!("/v1/sessions/{session}/events"), "").await;
    let mut lines = BufReader::new(stream).lines();
    while lines.next_line().await.unwrap().unwrap() != "\u{3a} still here" {}
    let asked = served.client.call("send", json!({ "sessionId": session, "args": { "to": "mira" } })).await;
    let id =
        asked["error"]["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap().to_owned();
    served.client.post(&format!("/v1/confirmations/{id}/approve"), json!({})).await.expect(200);
    let mut data = None;
    while data.is_none() {
        let line = lines.next_line().await.unwrap().expect("the stream goes on");
        data =
            line.strip_prefix("data: ").map(|data| serde_json::from_str::<serde_json::Value>(data).unwrap());
    }
    let data = data.unwrap();
    assert_eq!(
        (&data["envelope"]["ok"], &data["executionId"]),
        (&true.into(), &asked["meta"]["executionId"])
    );
    served.tell_to_stop();
    while lines.next_line().await.unwrap().is_some() {}
    assert!(served.stopped().await, "a stream does not hold the server up");
}
