//! `/v1/tasks`: the results of tools that run in the background.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;

use super::client::Client;
use super::support::TestServer;

async fn begin(client: &Client, body: Value) -> String {
    let envelope = client.call("later", body).await;
    envelope["data"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
}

type Lines = tokio::io::Lines<BufReader<TcpStream>>;

/// The events of a task after the one that was seen last.
async fn events(client: &Client, id: &str, seen: Option<u64>) -> Lines {
    let client = match seen {
        Some(seen) => client.with("last-event-id", seen.to_string()),
        None => client.clone(),
    };
    BufReader::new(client.send("GET", &format!("/v1/tasks/{id}/events"), "").await).lines()
}

/// The id and the data of the next event; `None` at the end of the stream.
async fn next(lines: &mut Lines) -> Option<(u64, Value)> {
    let mut id = None;
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(text) = line.strip_prefix("id: ") {
            id = Some(text.parse().unwrap());
        } else if let Some(text) = line.strip_prefix("data: ") {
            return Some((id.unwrap(), serde_json::from_str(text).unwrap()));
        }
    }
    None
}

async fn last(lines: &mut Lines) -> (u64, Value) {
    let mut last = None;
    while let Some(event) = next(lines).await {
        last = Some(event);
    }
    last.unwrap()
}

#[tokio::test]
async fn a_task_is_read_listed_and_followed_to_its_end() {
    let server = TestServer::with_background_tool().await;
    let session = server.session("text").await;
    let args = json!({ "wait": true, "progress": [0.5] });
    let id = begin(&server.client, json!({ "args": args, "sessionId": session, "executionId": "c1" })).await;
    let mut lines = events(&server.client, &id, None).await;
    let (first, seen) = next(&mut lines).await.unwrap();
    assert_eq!(
        (&seen["taskId"], &seen["executionId"], &seen["envelope"]),
        (&json!(id), &json!("c1"), &Value::Null)
    );
    server.permits.add_permits(1);
    let (end, ended) = last(&mut lines).await;
    assert!(end > first);
    assert_eq!((&ended["status"], &ended["envelope"]["data"]["args"]), (&json!("completed"), &args));
    let read = server.client.get(&format!("/v1/tasks/{id}")).await.expect(200);
    assert_eq!(read, ended);
    let listed = server.client.get(&format!("/v1/tasks?sessionId={session}")).await.expect(200);
    assert_eq!((listed["tasks"].as_array().unwrap().len(), &listed["next"]), (1, &Value::Null));
    assert_eq!((&listed["tasks"][0]["taskId"], &listed["tasks"][0]["envelope"]), (&json!(id), &Value::Null));
}

#[tokio::test]
async fn a_stream_of_events_resumes_after_the_last_one_that_was_seen() {
    let server = TestServer::with_background_tool().await;
    let id = begin(&server.client, json!({ "args": { "wait": true } })).await;
    let mut lines = events(&server.client, &id, None).await;
    let (mut seen, mut event) = next(&mut lines).await.unwrap();
    while event["status"] == "queued" {
        (seen, event) = next(&mut lines).await.unwrap();
    }
    drop(lines);
    server.permits.add_permits(1);
    let mut lines = events(&server.client, &id, Some(seen)).await;
    let (end, ended) = next(&mut lines).await.unwrap();
    assert_eq!((end > seen, &ended["status"]), (true, &json!("completed")));
    assert_eq!(next(&mut lines).await, None);
    let again = server.client.with("last-event-id", end.to_string());
    again.get(&format!("/v1/tasks/{id}/events")).await.expect(204);
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let server = TestServer::with_background_tool().await;
    let id = begin(&server.client, json!({ "args": { "wait": true } })).await;
    let asked = server.client.post(&format!("/v1/tasks/{id}/cancel"), json!({})).await.expect(200);
    assert_eq!(asked["cancelRequested"], true);
    let (_, ended) = last(&mut events(&server.client, &id, None).await).await;
    assert_eq!((&ended["status"], &ended["envelope"]["ok"]), (&json!("cancelled"), &json!(false)));
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let server = TestServer::with_background_tool().await;
    let mut begun = Vec::new();
    for _ in 0..5 {
        begun.push(begin(&server.client, json!({ "args": {} })).await);
    }
    let (mut listed, mut next) = (Vec::new(), String::new());
    loop {
        let page = server.client.get(&format!("/v1/tasks?limit=2{next}")).await.expect(200);
        let ids =
            page["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned());
        listed.extend(ids);
        let Some(place) = page["next"].as_str() else { break };
        next = format!("&before={place}");
    }
    listed.sort();
    begun.sort();
    assert_eq!(listed, begun);
    server.client.get("/v1/tasks?before=x").await.problem(400, "`before`");
}

#[tokio::test]
async fn a_task_of_another_principal_does_not_exist() {
    let server = TestServer::with_background_tool().await;
    let [ada, mira, admin] = [("ada", &[][..]), ("mira", &[]), ("root", &["admin"])]
        .map(|(name, roles)| server.client_with_key(name, roles));
    let id = begin(&ada, json!({ "args": { "wait": true } })).await;
    for path in [format!("/v1/tasks/{id}"), format!("/v1/tasks/{id}/events")] {
        mira.get(&path).await.problem(404, "Task `");
    }
    mira.post(&format!("/v1/tasks/{id}/cancel"), json!({})).await.problem(404, "Task `");
    let count =
        async |client: &Client| client.get("/v1/tasks").await.expect(200)["tasks"].as_array().unwrap().len();
    assert_eq!((count(&ada).await, count(&mira).await, count(&admin).await), (1, 0, 1));
    admin.post(&format!("/v1/tasks/{id}/cancel"), json!({})).await.expect(200);
}

#[tokio::test]
async fn the_result_is_delivered_to_the_events_of_the_session() {
    let server = TestServer::with_background_tool().await;
    let session = server.session("text").await;
    let path = format!("/v1/sessions/{session}/events");
    let mut lines = BufReader::new(server.client.send("GET", &path, "").await).lines();
    while !lines.next_line().await.unwrap().unwrap().starts_with(": still here") {}
    let id = begin(&server.client, json!({ "args": {}, "sessionId": session })).await;
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let delivery: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&delivery["executionId"], &delivery["envelope"]["ok"]), (&json!(id), &json!(true)));
        break;
    }
}
