//! Bad input over every chat wire: a clear error in the wire's own form, and nothing lost.

use serde_json::{Value, json};

use super::chat::{ChatServer, answered, chunks, data, dechunked, message, of_kind};
use super::client::{Client, Response};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    AiSdk,
    Agui,
    Responses,
    Completions,
}

const WIRES: [Wire; 4] = [Wire::AiSdk, Wire::Agui, Wire::Responses, Wire::Completions];

/// An error as the client of a wire reads it. The UI message stream has no codes.
#[derive(Debug)]
struct WireError {
    status: u16,
    code: Option<String>,
    text: String,
}

impl Wire {
    const fn path(self) -> &'static str {
        match self {
            Self::AiSdk => "/api/chat",
            Self::Agui => "/api/agui",
            Self::Responses => "/v1/responses",
            Self::Completions => "/v1/chat/completions",
        }
    }

    /// A message of the user in this wire's form, in the chat `c1` or after a response.
    fn message(self, id: &str, content: Value, previous: &Value) -> Value {
        let name = if self == Self::AiSdk { "parts" } else { "content" };
        let said = json!({ "id": id, "role": "user", name: content });
        match self {
            Self::AiSdk => json!({ "id": "c1", "trigger": "submit-message", "messages": [said] }),
            Self::Agui => json!({ "threadId": "c1", "runId": format!("run-{id}"), "messages": [said] }),
            Self::Responses => json!({ "model": "toolwright", "previous_response_id": previous,
                "input": [{ "role": "user", "content": content }] }),
            Self::Completions => {
                json!({ "model": "toolwright", "messages": [{ "role": "user", "content": content }] })
            }
        }
    }

    fn text(self, id: &str, text: &str, previous: &Value) -> Value {
        let content = match self {
            Self::AiSdk => json!([{ "type": "text", "text": text }]),
            _ => json!(text),
        };
        self.message(id, content, previous)
    }

    /// The error in the form that the wire's clients read.
    #[track_caller]
    fn error(self, response: &Response) -> WireError {
        let (status, text) = (response.status, dechunked(response));
        assert!(
            !text.contains("secret") && !text.contains("Bearer") && !text.contains("127.0.0.1"),
            "{text}"
        );
        let error = match self {
            // The turn or the run has begun: its stream has the error.
            Self::AiSdk if status == 200 => {
                let part = of_kind(&chunks(response), "error").clone();
                WireError { status, code: None, text: part["errorText"].as_str().unwrap().to_owned() }
            }
            Self::Agui if status == 200 => {
                let event = of_kind(&data(&text), "RUN_ERROR").clone();
                let field = |name: &str| event[name].as_str().unwrap().to_owned();
                WireError { status, code: Some(field("code")), text: field("message") }
            }
            Self::AiSdk | Self::Agui => {
                assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
                WireError { status, code: None, text }
            }
            Self::Responses | Self::Completions => {
                let error = &response.json()["error"];
                let field = |name: &str| error[name].as_str().map(str::to_owned);
                WireError { status, code: field("code"), text: field("message").unwrap() }
            }
        };
        assert!(error.text.ends_with('.') && error.text.len() > 15, "{error:?}");
        error
    }
}

/// A server with one message and its answer in the chat `c1`, and one response.
async fn begun() -> (ChatServer, Value) {
    let server = ChatServer::start().await;
    chunks(&server.say("c1", "m1", "say hi").await);
    let created =
        server.client.post("/v1/responses", json!({ "model": "toolwright", "input": "say hi" })).await;
    let id = created.expect(200)["id"].clone();
    (server, id)
}

/// The messages of the chat `c1`, and of the session of a response.
async fn histories(client: &Client, response: &Value) -> [Value; 2] {
    let session = response.as_str().unwrap().strip_prefix("resp_").unwrap().rsplit_once('_').unwrap().0;
    let chat = client.get("/api/chat/c1/messages").await.expect(200);
    [chat, client.get(&format!("/api/chat/{session}/messages")).await.expect(200)]
}

#[tokio::test]
async fn bad_input_is_a_clear_error_on_every_wire_and_changes_nothing() {
    let (server, previous) = begun().await;
    let before = histories(&server.client, &previous).await;
    let large = "x".repeat(5 << 20);
    let huge = "x".repeat(10 << 20);
    for wire in WIRES {
        let text = |text: &str| wire.text("m2", text, &previous);
        let part = |kind: &str| wire.message("m2", json!([{ "type": kind, "data": "x" }]), &previous);
        let wrong_key = server.client.with("authorization", "Bearer wrong-key-secret");
        let agui = if wire == Wire::Agui { 200 } else { 400 };
        for (client, body, status, code, expected) in [
            (&wrong_key, text("say x"), 401, None, "key"),
            (&server.client, text(&huge), 413, None, "larger than 8388608 bytes"),
            (
                &server.client,
                text(&large),
                if wire == Wire::Agui { 200 } else { 413 },
                Some("message_too_large"),
                "at most 4194304",
            ),
            (&server.client, part("hologram"), agui, None, "`hologram`"),
            (&server.client, part(&"y".repeat(10_000)), agui, None, "yyy"),
            (&server.client, text("  "), agui, Some("invalid_message"), "message is empty"),
        ] {
            let error = wire.error(&client.post(wire.path(), body).await);
            assert_eq!(error.status, status, "{wire:?}: {error:?}");
            assert!(error.text.contains(expected) && error.text.len() < 400, "{wire:?}: {error:?}");
            if let (Some(code), Some(own)) = (code, &error.code) {
                assert_eq!(own, code, "{wire:?}: {error:?}");
            }
        }
        assert_eq!(histories(&server.client, &previous).await, before, "{wire:?}");
    }
    assert_eq!((server.server.runs(), server.model.requests()), (0, 2));
}

#[tokio::test]
async fn unknown_models_responses_items_and_chats_are_named_in_the_error() {
    let (server, previous) = begun().await;
    let before = histories(&server.client, &previous).await;
    let item = |kind: &str| json!({ "model": "toolwright", "previous_response_id": previous, "input": [{ "type": kind }] });
    let role = json!([{ "role": "wizard", "content": "hi" }]);
    for (wire, body, status, code, expected) in [
        (Wire::Responses, json!({ "model": "gpt-9", "input": "say x" }), 404, "model_not_found", "`gpt-9`"),
        (Wire::Completions, json!({ "model": "gpt-9", "messages": [] }), 404, "model_not_found", "`gpt-9`"),
        (
            Wire::Responses,
            json!({ "model": "toolwright", "input": "say x", "previous_response_id": "resp_other_3" }),
            404,
            "previous_response_not_found",
            "`resp_other_3`",
        ),
        (Wire::Responses, item("computer_call"), 400, "", "`computer_call`"),
        (Wire::Responses, json!({ "model": "toolwright", "input": role }), 400, "", "`wizard`"),
        (Wire::Completions, json!({ "model": "toolwright", "messages": role }), 400, "", "`wizard`"),
        (
            Wire::Agui,
            json!({ "threadId": "c1", "runId": "r", "messages": role }),
            200,
            "",
            "`user` or `tool`",
        ),
        (Wire::Agui, json!({ "threadId": "c 1", "runId": "r", "messages": [] }), 200, "", "printable ASCII"),
        (Wire::AiSdk, json!({ "id": "c1", "messages": role }), 400, "", "role `user`"),
    ] {
        let error = wire.error(&server.client.post(wire.path(), body.clone()).await);
        assert_eq!(error.status, status, "{body}: {error:?}");
        assert!(error.text.contains(expected), "{body}: {error:?}");
        if !code.is_empty() {
            assert_eq!(error.code.as_deref(), Some(code), "{body}");
        }
    }
    for (method, path) in [("GET", "/api/chat/other/messages"), ("POST", "/api/chat/other/stop")] {
        let response = server.client.request(method, path, "{}").await;
        let error = Wire::AiSdk.error(&response);
        assert_eq!((error.status, error.text.as_str()), (404, "Chat `other` not found."), "{path}");
    }
    let response = server.client.get("/v1/responses/resp_other_3").await;
    assert_eq!(Wire::Responses.error(&response).code.as_deref(), Some("response_not_found"));
    assert_eq!(histories(&server.client, &previous).await, before);
    assert_eq!((server.server.runs(), server.model.requests()), (0, 2));
}

#[tokio::test]
async fn a_provider_that_fails_or_is_down_loses_no_message_on_any_wire() {
    for (fails, said, code, expected) in [
        (true, "fail 401", "authentication", "does not accept the key"),
        (true, "fail 404", "unknown_model", "knows no model"),
        (true, "fail 503", "model_unavailable", "does not work at the moment"),
        (false, "say hi", "model_unavailable", "cannot be reached"),
    ] {
        let server = if fails { ChatServer::start().await } else { ChatServer::without_model().await };
        for wire in WIRES {
            let mut body = wire.text(&format!("{wire:?}"), said, &Value::Null);
            // Stored as a conversation of its own.
            body.as_object_mut().unwrap().remove("previous_response_id");
            let error = wire.error(&server.client.post(wire.path(), body).await);
            assert!(error.text.contains(expected), "{wire:?}: {error:?}");
            let (own, status) = match (wire, code) {
                (Wire::AiSdk | Wire::Agui, _) => (code.trim_start_matches("model_"), 200),
                (_, "model_unavailable") => (code, 503),
                _ => (code, 502),
            };
            assert_eq!((error.status, error.code.as_deref().unwrap_or(own)), (status, own), "{wire:?}");
        }
        // Both chats have the same name: one conversation.
        let history = server.client.get("/api/chat/c1/messages").await.expect(200);
        let users = history["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "user");
        let texts: Vec<_> = users.map(|one| one["parts"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, [said, said]);
    }
}

#[tokio::test]
async fn the_approval_of_another_conversation_is_refused_on_every_wire() {
    let server = ChatServer::start().await;
    let ask = |chat: &str| message(chat, "m1", "call send {\"to\": \"a\"}");
    let (other, own) = (
        chunks(&server.client.post("/api/chat", ask("c2")).await),
        chunks(&server.client.post("/api/chat", ask("c1")).await),
    );
    let foreign = of_kind(&other, "tool-approval-request")["approvalId"].clone();
    let create = json!({ "model": "toolwright", "input": "call send {\"to\": \"a\"}" });
    let response = server.client.post("/v1/responses", create).await.expect(200);
    let before = histories(&server.client, &response["id"]).await;
    let mut ui = answered("c1", &own, true);
    ui["messages"][0]["parts"][0]["approval"]["id"] = foreign.clone();
    let resume = json!([{ "interruptId": foreign, "status": "resolved", "payload": { "approved": true } }]);
    let answer = |id: String| {
        json!({ "model": "toolwright", "previous_response_id": response["id"],
            "input": [{ "type": "mcp_approval_response", "approval_request_id": id, "approve": true }] })
    };
    let id = foreign.as_str().unwrap();
    for (wire, body) in [
        (Wire::AiSdk, ui),
        (Wire::Agui, json!({ "threadId": "c1", "runId": "r", "messages": [], "resume": resume })),
        (Wire::Responses, answer(id.to_owned())),
        (Wire::Responses, answer(format!("mcpr_{id}"))),
    ] {
        let error = wire.error(&server.client.post(wire.path(), body).await);
        let status = if wire == Wire::Agui { 200 } else { 409 };
        assert_eq!(
            (error.status, error.code.as_deref().unwrap_or("approval_refused")),
            (status, "approval_refused")
        );
        assert!(
            error.text.contains("is about another call") && !error.text.contains(id),
            "{wire:?}: {error:?}"
        );
    }
    assert_eq!(histories(&server.client, &response["id"]).await, before);
    assert_eq!(server.server.runs(), 0);
    // Each is still open for its own conversation.
    for (chat, asked) in [("c1", &own), ("c2", &other)] {
        chunks(&server.client.post("/api/chat", answered(chat, asked, true)).await);
    }
    let request = response["output"][0]["id"].as_str().unwrap().to_owned();
    server.client.post("/v1/responses", answer(request)).await.expect(200);
    assert_eq!(server.server.runs(), 3);
}
