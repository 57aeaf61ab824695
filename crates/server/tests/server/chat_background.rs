//! Results of background calls, and clients that read on from the last event that they have seen.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;

use super::chat::{ChatServer, answered, chunks, data, dechunked, message, of_kind};
use super::client::{Client, Response};

/// The lines of the follow stream of a chat.
async fn follow(client: &Client, chat: &str) -> Lines<BufReader<TcpStream>> {
    BufReader::new(client.send("GET", &format!("/api/chat/{chat}/stream?follow=tasks"), "").await).lines()
}

/// The next part of a stream, and its id. `None` at the end.
async fn next_part(lines: &mut Lines<BufReader<TcpStream>>) -> Option<(Value, u64)> {
    let mut part = None;
    while let Some(line) = lines.next_line().await.unwrap() {
        if line == "data: [DONE]" {
            return None;
        }
        if let Some(text) = line.strip_prefix("data: ") {
            part = Some(serde_json::from_str(text).unwrap());
        } else if let Some(id) = line.strip_prefix("id: ") {
            return part.map(|part| (part, id.parse().unwrap()));
        }
    }
    None
}

/// The ids of a stream's events.
fn ids(response: &Response) -> Vec<u64> {
    let text = dechunked(response);
    text.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect()
}

#[tokio::test]
async fn the_result_of_a_background_call_is_a_part_when_its_task_is_done() {
    let server = ChatServer::with_background_tool().await;
    let client = &server.client;
    let begun = chunks(&server.say("c1", "m1", "call later {\"wait\": true}").await);
    let first = of_kind(&begun, "tool-output-available");
    assert_eq!(first["output"]["task"]["status"], "queued");
    assert_eq!(client.get("/api/chat/c1/stream").await.status, 204, "the turn is over");
    let mut lines = follow(client, "c1").await;
    while !lines.next_line().await.unwrap().unwrap().starts_with("x-vercel-ai-ui-message-stream: v1") {}
    // Another turn begins a second task, while the first is followed.
    let second = chunks(&server.say("c1", "m2", "call later {}").await);
    let second_call = &of_kind(&second, "tool-input-available")["toolCallId"];
    let (part, second_id) = next_part(&mut lines).await.unwrap();
    assert_eq!((&part["type"], &part["toolCallId"]), (&json!("tool-output-available"), second_call));
    server.server.permits.add_permits(1);
    let (part, first_id) = next_part(&mut lines).await.unwrap();
    assert_eq!(part["toolCallId"], first["toolCallId"]);
    assert_eq!(part["output"]["args"], json!({ "wait": true }));
    assert_eq!(next_part(&mut lines).await, None);
    assert!(first_id > second_id);
    // A client that connects again gets what it has not seen, and then nothing.
    let path = "/api/chat/c1/stream?follow=tasks";
    let rest = chunks(&client.with("last-event-id", second_id.to_string()).get(path).await);
    assert_eq!(rest, [part]);
    assert_eq!(client.with("last-event-id", first_id.to_string()).get(path).await.status, 204);
    assert_eq!(chunks(&client.get(path).await).len(), 2);
    let log = client.with("accept", "application/x-ndjson").get(path).await;
    let text = dechunked(&log);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        events.iter().map(|event| event["position"].as_u64().unwrap()).collect::<Vec<_>>(),
        [second_id, first_id]
    );
    let history = client.get("/api/chat/c1/messages").await.expect(200);
    assert_eq!(history["messages"][1]["parts"][1]["output"]["args"], json!({ "wait": true }));
}

#[tokio::test]
async fn a_failed_task_is_a_failed_part_and_a_chat_without_tasks_has_nothing_to_follow() {
    let server = ChatServer::with_background_tool().await;
    let client = &server.client;
    chunks(&server.say("c1", "m1", "call later {\"wait\": true}").await);
    let task = client.get("/v1/tasks").await.expect(200)["tasks"][0]["taskId"].as_str().unwrap().to_owned();
    let mut lines = follow(client, "c1").await;
    client.post(&format!("/v1/tasks/{task}/cancel"), json!({})).await.expect(200);
    assert_eq!(next_part(&mut lines).await.unwrap().0["type"], "tool-output-error");
    assert_eq!(next_part(&mut lines).await, None);
    chunks(&server.say("c2", "m1", "say hi").await);
    for chat in ["c2", "unknown"] {
        assert_eq!(client.get(&format!("/api/chat/{chat}/stream?follow=tasks")).await.status, 204, "{chat}");
    }
    let refused = client.get("/api/chat/c1/stream?follow=all").await;
    assert_eq!(
        (refused.status, refused.text()),
        (400, "The query parameter `follow` must be `tasks`, not `all`.")
    );
    let mira = server.server.client_with_key("mira", &[]);
    assert_eq!(mira.get("/api/chat/c1/stream?follow=tasks").await.status, 204, "another user's chat");
}

#[tokio::test]
async fn a_result_of_an_earlier_turn_does_not_cut_the_replay_of_a_later_one() {
    let server = ChatServer::with_background_tool().await;
    let client = &server.client;
    chunks(&server.say("c1", "m1", "call later {\"wait\": true}").await);
    let asked = chunks(&server.say("c1", "m2", "call send {}").await);
    // The result is written between the question and its answer.
    let mut lines = follow(client, "c1").await;
    server.server.permits.add_permits(1);
    assert!(next_part(&mut lines).await.is_some());
    chunks(&client.post("/api/chat", answered("c1", &asked, true)).await);
    let replayed = chunks(&server.say("c1", "m2", "call send {}").await);
    let last = replayed.iter().rfind(|chunk| chunk["type"] == "text-delta");
    assert!(last.is_some_and(|chunk| chunk["delta"].as_str().unwrap().contains("result is")), "{replayed:?}");
    assert_eq!(of_kind(&replayed, "finish")["finishReason"], "stop");
}

#[tokio::test]
async fn a_client_that_has_seen_a_part_of_the_answer_gets_the_rest() {
    let server = ChatServer::start().await;
    let client = &server.client;
    let whole = server.say("c1", "m1", "call read {\"a\": 1}").await;
    let (parts, ids) = (chunks(&whole), ids(&whole));
    assert!(ids.is_sorted() && ids.len() > 5, "{ids:?}");
    // After each event, the rest is what followed it.
    let text = dechunked(&whole);
    for id in &ids[..ids.len() - 1] {
        let place = text.rfind(&format!("id: {id}\n\n")).unwrap();
        let expected = data(&text[place..]);
        let rest = client.with("last-event-id", id.to_string()).get("/api/chat/c1/stream").await;
        assert_eq!(chunks(&rest), expected, "after {id}");
    }
    let end = ids.last().unwrap().to_string();
    assert_eq!(client.with("last-event-id", end).get("/api/chat/c1/stream").await.status, 204);
    assert_eq!(client.get("/api/chat/c1/stream").await.status, 204, "without the header, only what runs");
    assert_eq!(chunks(&client.with("last-event-id", "0").get("/api/chat/c1/stream").await), parts);
    let refused = client.with("last-event-id", "x").get("/api/chat/c1/stream").await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("`last-event-id`"), "{refused:?}");
}

#[tokio::test]
async fn a_client_that_lost_its_connection_within_a_text_gets_the_rest_of_the_text() {
    let server = ChatServer::start().await;
    let body = message("c1", "m1", "wait").to_string();
    let mut lines = BufReader::new(server.client.send("POST", "/api/chat", &body).await).lines();
    let (part, id) = loop {
        let next = next_part(&mut lines).await.unwrap();
        if next.0["type"] == "text-delta" {
            break next;
        }
    };
    assert_eq!(part["delta"], "begun");
    drop(lines);
    let client = server.client.with("last-event-id", (id - 2).to_string());
    let mut lines = BufReader::new(client.send("GET", "/api/chat/c1/stream", "").await).lines();
    let (part, _) = next_part(&mut lines).await.unwrap();
    assert_eq!((&part["type"], &part["delta"]), (&json!("text-delta"), &json!("un")));
    server.model.permits.add_permits(1);
    let (part, _) = next_part(&mut lines).await.unwrap();
    assert_eq!(part["delta"], " ended");
}
