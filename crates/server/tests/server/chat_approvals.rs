//! Answers to confirmation requests over the chat wires: only the owner's, with the id that the chat has shown.

use serde_json::{Value, json};

use super::chat::{ChatServer, answered, chunks, data, dechunked, message, of_kind};

/// The same answer with another approval id.
fn forged(mut answer: Value, id: &str) -> Value {
    answer["messages"][0]["parts"][0]["approval"]["id"] = id.into();
    answer
}

#[tokio::test]
async fn the_bare_id_and_guessed_ids_approve_nothing() {
    let server = ChatServer::start().await;
    let asked = chunks(&server.say("c1", "m1", "call send {\"to\": \"mira\"}").await);
    let request = of_kind(&asked, "tool-approval-request");
    let id = request["approvalId"].as_str().unwrap();
    // Admins see only its first part, in lists and logs.
    let listed =
        server.client.get("/v1/confirmations").await.expect(200)["confirmations"][0]["confirmationId"]
            .clone();
    let bare = listed.as_str().unwrap();
    assert_eq!(request["approvalDescriptor"]["confirmationId"], bare);
    let key = id.strip_prefix(&format!("{bare}.")).unwrap();
    assert_eq!(key.len(), 32);
    let mut other: Vec<u8> = key.into();
    other[0] = if other[0] == b'0' { b'1' } else { b'0' };
    let other = format!("{bare}.{}", String::from_utf8(other).unwrap());
    for wrong in [bare, &other, &format!("{bare}."), &id.to_uppercase(), key, ""] {
        let refused = server.client.post("/api/chat", forged(answered("c1", &asked, true), wrong)).await;
        assert_eq!(refused.status, 409, "{wrong}");
        // AG-UI reads the thread of the same name.
        let resume = json!([{ "interruptId": wrong, "status": "resolved", "payload": { "approved": true } }]);
        let run = json!({ "threadId": "c1", "runId": "r1", "messages": [], "resume": resume });
        let events = data(&dechunked(&server.client.post("/api/agui", run).await));
        assert_eq!(events.last().unwrap()["code"], "approval_refused", "{wrong}");
    }
    assert_eq!(server.server.runs(), 0);
    // The REST API takes it for no token either.
    let path = format!("/v1/confirmations/{id}/approve");
    assert_ne!(server.client.post(&path, json!({})).await.status, 200);
    assert_eq!(server.server.runs(), 0);
    let history = server.client.get("/api/chat/c1/messages").await.expect(200);
    assert_eq!(history["messages"][1]["parts"][1]["approval"]["id"], id, "a reload shows the same id");
    chunks(&server.client.post("/api/chat", answered("c1", &asked, true)).await);
    assert_eq!(server.server.runs(), 1);
}

#[tokio::test]
async fn the_id_of_one_chat_approves_nothing_in_another_and_for_nobody_else() {
    let server = ChatServer::start().await;
    let (mira, ivo) = (server.server.client_with_key("mira", &[]), server.server.client_with_key("ivo", &[]));
    let ask = |chat: &str| message(chat, "m1", "call send {\"to\": \"a\"}");
    let first = chunks(&mira.post("/api/chat", ask("c1")).await);
    let second = chunks(&mira.post("/api/chat", ask("c2")).await);
    let of_ivo = chunks(&ivo.post("/api/chat", ask("c1")).await);
    let id =
        |asked: &[Value]| of_kind(asked, "tool-approval-request")["approvalId"].as_str().unwrap().to_owned();
    for (client, chat, asked, foreign) in [
        (&mira, "c2", &second, id(&first)),
        (&mira, "c1", &first, id(&second)),
        (&mira, "c1", &first, id(&of_ivo)),
        (&ivo, "c1", &of_ivo, id(&first)),
    ] {
        let refused = client.post("/api/chat", forged(answered(chat, asked, true), &foreign)).await;
        assert_eq!(refused.status, 409);
    }
    // An answer begins no chat.
    let resume =
        json!([{ "interruptId": id(&first), "status": "resolved", "payload": { "approved": true } }]);
    let run = json!({ "threadId": "new", "runId": "r1", "messages": [], "resume": resume });
    assert_eq!(mira.post("/api/chat", answered("new", &first, true)).await.status, 409);
    let events = data(&dechunked(&mira.post("/api/agui", run).await));
    assert_eq!(events.last().unwrap()["code"], "approval_refused");
    assert_eq!(mira.get("/api/chat/new/messages").await.status, 404);
    assert_eq!(server.server.runs(), 0);
    for (client, chat, asked) in [(&mira, "c2", &second), (&ivo, "c1", &of_ivo), (&mira, "c1", &first)] {
        chunks(&client.post("/api/chat", answered(chat, asked, true)).await);
    }
    assert_eq!(server.server.runs(), 3);
}

#[tokio::test]
async fn an_approval_of_an_admin_continues_the_turn_of_its_chat() {
    let server = ChatServer::start().await;
    let mira = server.server.client_with_key("mira", &[]);
    let admin = server.server.client_with_key("ada", &["admin"]);
    chunks(&mira.post("/api/chat", message("c1", "m1", "call send {\"to\": \"a\"}")).await);
    let waiting = admin.get("/v1/confirmations").await.expect(200)["confirmations"][0].clone();
    let path = format!("/v1/confirmations/{}/approve", waiting["confirmationId"].as_str().unwrap());
    admin.post(&path, json!({})).await.expect(200);
    // The turn goes on; a client that loads the page gets it as it comes, or finds it complete.
    let history = loop {
        let stream = mira.get("/api/chat/c1/stream").await;
        let history = mira.get("/api/chat/c1/messages").await.expect(200).to_string();
        if stream.status == 204 && history.contains("The result is") {
            break history;
        }
    };
    assert!(history.contains("output-available"), "{history}");
    assert_eq!((server.server.runs(), server.model.requests()), (1, 2));
}
