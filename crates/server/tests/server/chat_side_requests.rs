//! Requests of chat clients for titles, tags and summaries: they are offered no tools.

use serde_json::json;

use super::chat::ChatServer;

/// As the clients write them.
const SIDE_REQUESTS: [(&str, &str); 3] = [
    (
        "Open WebUI",
        "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.",
    ),
    (
        "LibreChat, titles",
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the \
         title itself.\n\nConversation:\nHuman: call write {}",
    ),
    (
        "LibreChat, summaries",
        "Summarize the conversation by integrating new lines into the current summary.\n\nEXAMPLE:\nCurrent summary:",
    ),
];

#[tokio::test]
async fn a_request_for_a_title_or_a_summary_is_offered_no_tools() {
    let server = ChatServer::start().await;
    let own = json!([{ "type": "function", "function": { "name": "own_tool", "parameters": { "type": "object" } } }]);
    for (client, text) in SIDE_REQUESTS {
        for text in [text.to_owned(), format!("\n  {text}")] {
            let messages =
                json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": text }]);
            let body = json!({ "model": "toolwright", "messages": messages, "tools": own });
            server.client.post("/v1/chat/completions", body).await.expect(200);
            assert_eq!(server.model.offered_tools(), [""; 0], "{client}");
            let body = json!({ "model": "toolwright", "input": text, "tools": [] });
            server.client.post("/v1/responses", body).await.expect(200);
            assert_eq!(server.model.offered_tools(), [""; 0], "{client}");
        }
        // Within a conversation, and with other words before it, it is a message like any other.
        let said = json!({ "role": "user", "content": text });
        let later =
            json!([{ "role": "user", "content": "say a" }, { "role": "assistant", "content": "a" }, said]);
        let quoted = json!([{ "role": "user", "content": format!("What does this mean: {text}") }]);
        for messages in [later, quoted] {
            let body = json!({ "model": "toolwright", "messages": messages, "tools": own });
            server.client.post("/v1/chat/completions", body).await.expect(200);
            let offered = server.model.offered_tools();
            assert!(offered.iter().any(|name| name == "write"), "{client}: {offered:?}");
            assert!(offered.iter().any(|name| name == "own_tool"), "{client}: {offered:?}");
        }
    }
    assert_eq!(server.server.runs(), 0);
}
