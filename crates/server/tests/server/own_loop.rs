//! `POST /v1/sessions/{id}/messages`: the calls of a model's message in a provider's form, and their results.

use serde_json::{Value, json};
use toolwright_orchestrator::store::Backend;

use super::support::TestServer;

async fn send(server: &TestServer, session: &str, provider: &str, message: Value) -> Value {
    let path = format!("/v1/sessions/{session}/messages?provider={provider}");
    server.client.post(&path, message).await.expect(200)
}

fn chat_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[tokio::test]
async fn every_call_of_a_chat_message_gets_a_result_message() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [
        chat_call("c1", "echo", r#"{"message": "hi"}"#), chat_call("c2", "echo", "{"), chat_call("c3", "eco", "{}")] });
    let answer = send(&server, &session, "openai-chat", message.clone()).await;
    let messages = answer["messages"].as_array().unwrap();
    let result = |at: usize| -> Value {
        assert_eq!(messages[at]["role"], "tool");
        serde_json::from_str(messages[at]["content"].as_str().unwrap()).unwrap()
    };
    assert_eq!(messages[0]["tool_call_id"], "c1");
    assert_eq!(result(0)["data"]["args"]["message"], "hi");
    assert_eq!((&result(1)["type"], &result(2)["type"]), (&json!("VALIDATION"), &json!("NOT_FOUND")));
    assert_eq!(answer["questions"], json!([]));
    // The whole response, as the provider's API returns it; the same calls are replayed.
    let whole = json!({ "choices": [{ "index": 0, "message": message }] });
    assert_eq!(send(&server, &session, "openai-chat", whole).await, answer);
    assert_eq!(server.runs(), 1);
    let text = json!({ "role": "assistant", "content": "Done." });
    assert_eq!(send(&server, &session, "openai-chat", text).await["messages"], json!([]));
}

#[tokio::test]
async fn a_question_is_beside_the_messages_and_its_answer_completes_the_call() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let message = json!({ "role": "assistant", "content": [
        { "type": "text", "text": "I will send it." },
        { "type": "tool_use", "id": "t1", "name": "send", "input": { "to": "mira" } }] });
    let waiting = send(&server, &session, "anthropic", message.clone()).await;
    let question = &waiting["questions"][0];
    assert_eq!((&question["callId"], &question["tool"]), (&json!("t1"), &json!("send")));
    assert_eq!(question["preview"], "Send to mira?");
    let token = question["token"].as_str().unwrap();
    assert!(!waiting["messages"].to_string().contains(token), "a model never sees the token");
    assert_eq!(waiting["messages"][0]["content"][0]["is_error"], true);
    server.client.post(&format!("/v1/confirmations/{token}/approve"), json!({})).await.expect(200);
    let done = send(&server, &session, "anthropic", message.clone()).await;
    assert_eq!(done["questions"], json!([]));
    assert_eq!(done["messages"][0]["content"][0]["tool_use_id"], "t1");
    assert!(done["messages"].to_string().contains("mira"));
    send(&server, &session, "anthropic", message).await;
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn calls_spend_the_budget_of_the_turn() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let look =
        |id: String| json!({ "content": [{ "type": "tool_use", "id": id, "name": "look", "input": {} }] });
    for at in 0..6 {
        let answer = send(&server, &session, "anthropic", look(format!("a{at}"))).await.to_string();
        assert_eq!(answer.contains("BUDGET_EXCEEDED"), at == 5, "{answer}");
    }
    server.client.post(&format!("/v1/sessions/{session}/turn"), json!({})).await.expect(200);
    let answer = send(&server, &session, "anthropic", look("b".to_owned())).await.to_string();
    assert!(!answer.contains("BUDGET_EXCEEDED"), "{answer}");
}

#[tokio::test]
async fn a_call_whose_arguments_cannot_be_read_is_audited_and_counted() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let message =
        json!({ "role": "assistant", "content": null, "tool_calls": [chat_call("c1", "echo", "{")] });
    let answer = send(&server, &session, "openai-chat", message).await;
    assert!(answer["messages"][0]["content"].as_str().unwrap().contains("VALIDATION"), "{answer}");
    let rows = server.orchestrator.store().audit_rows(0, 100).await.unwrap();
    let entries: Vec<Value> = rows.iter().map(|row| serde_json::from_str(&row.entry).unwrap()).collect();
    let refused = entries.iter().find(|entry| entry["executionId"] == "c1").unwrap();
    assert_eq!((&refused["event"], &refused["outcome"]), (&json!("refused"), &json!("VALIDATION")));
    assert!(refused["toolVersion"].as_str().is_some_and(|version| !version.is_empty()));
    assert_eq!(server.runs(), 0);
}

#[tokio::test]
async fn a_result_in_the_form_of_mcp_has_structured_content() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let call = json!({ "method": "tools/call", "id": 1, "params": { "name": "echo", "arguments": { "message": "hi" } } });
    let answer = send(&server, &session, "mcp", call).await;
    assert_eq!(answer["messages"][0]["structuredContent"]["args"]["message"], "hi");
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_refused() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    let post = |path: String, body: &'static str| {
        let server = &server;
        async move { server.client.request("POST", &path, body).await }
    };
    let path = format!("/v1/sessions/{session}/messages");
    post(path.clone(), "{}").await.problem(400, "?provider=");
    post(format!("{path}?provider=openai"), "{}").await.problem(400, "`openai-chat`");
    post(format!("{path}?provider=anthropic"), "[]").await.problem(400, "");
    post(format!("{path}?provider=anthropic"), "{").await.problem(400, "");
    post("/v1/sessions/none/messages?provider=anthropic".to_owned(), "{}").await.problem(404, "Session `");
    let mira = server.client_with_key("mira", &[]);
    mira.post(&format!("{path}?provider=anthropic"), json!({})).await.problem(404, "Session `");
}
