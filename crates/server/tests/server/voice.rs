//! `/voice`: what is refused before the upgrade, and what a connection is closed with. The stand-ins of `tests/voice/`
//! drive whole sessions.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{WebSocketStream, client_async};
use toolwright_agent::voice::{VoiceAgent, VoiceSection};
use toolwright_agent::{Agent, AgentOptions, Model};
use toolwright_server::Options;

use super::support::{TestServer, orchestrator};

/// A server whose voice model cannot be reached.
pub async fn server_with_voice() -> TestServer {
    let (runs, permits) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
    let orchestrator = orchestrator(&runs, &permits);
    let agent = Agent::new(orchestrator.clone(), Model::Offline, AgentOptions::default());
    let section: VoiceSection =
        serde_json::from_value(json!({ "provider": "gemini-live", "url": "ws://127.0.0.1:1" })).unwrap();
    let voice = VoiceAgent::new(agent.clone(), section.options(&|_| None).unwrap().unwrap());
    let change = |options: &mut Options| {
        options.agent = Some(agent);
        options.voice = Some(voice);
    };
    TestServer::set_up(orchestrator, runs, permits, change, None).await
}

async fn connect(server: &TestServer, protocols: Option<&str>) -> WebSocketStream<TcpStream> {
    let mut request = format!("ws://{}/voice", server.client.address).into_client_request().unwrap();
    if let Some(protocols) = protocols {
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_str(protocols).unwrap());
    }
    let stream = TcpStream::connect(server.client.address).await.unwrap();
    client_async(request, stream).await.unwrap().0
}

/// Sends frames, and reads to the end: the close code and the code of the last error.
async fn closed(mut socket: WebSocketStream<TcpStream>, frames: Vec<Message>) -> (u16, Value) {
    for frame in frames {
        socket.send(frame).await.unwrap();
    }
    let mut error = Value::Null;
    while let Some(frame) = socket.next().await {
        match frame.unwrap() {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(message["type"], "error", "{message}");
                assert!(message["message"].as_str().unwrap().ends_with('.'), "{message}");
                error = message["code"].clone();
            }
            Message::Close(Some(frame)) => return (frame.code.into(), error),
            _ => {}
        }
    }
    panic!("closed without a code")
}

#[tokio::test]
async fn without_a_provider_the_problem_says_what_to_set() {
    let server = TestServer::start().await;
    server.client.get("/voice").await.problem(503, "`[voice] provider`");
}

#[tokio::test]
async fn what_is_no_websocket_of_an_allowed_caller_is_refused_before_the_upgrade() {
    let server = server_with_voice().await;
    let refused = server.client.get("/voice").await;
    refused.problem(426, "WebSocket");
    assert_eq!(refused.header("upgrade"), Some("websocket"));
    server.client.with("origin", "http://evil.example").get("/voice").await.problem(403, "cors_origins");
    let with_keys = server_with_voice().await;
    with_keys.create_key("mira", &[]);
    with_keys.client.get("/voice").await.problem(401, "Bearer");
}

#[tokio::test]
async fn a_breach_of_the_protocol_has_its_close_code() {
    let server = server_with_voice().await;
    let start = || Message::text(json!({ "type": "start", "version": 1 }).to_string());
    for (frames, code, error) in [
        (vec![Message::text("RIFF")], 4400, "invalid_json"),
        (vec![Message::Binary(vec![0, 0].into())], 4400, "not_started"),
        (vec![Message::text(r#"{"type": "stop"}"#)], 4400, "not_started"),
        (vec![Message::text(r#"{"type": "start", "version": 7}"#)], 4400, "invalid_field"),
        (
            vec![Message::text(r#"{"type": "start", "version": 1, "inputSampleRate": 44100}"#)],
            4400,
            "invalid_field",
        ),
        (
            vec![Message::text(r#"{"type": "start", "version": 1, "sessionId": "nobody"}"#)],
            4404,
            "unknown_session",
        ),
        (vec![Message::Binary(vec![0; 70_000].into())], 4413, "frame_too_large"),
        (vec![start()], 4502, "provider_unavailable"),
    ] {
        let found = closed(connect(&server, None).await, frames).await;
        assert_eq!(found, (code, json!(error)));
    }
}

#[tokio::test]
async fn a_page_sends_its_key_as_a_subprotocol() {
    let server = server_with_voice().await;
    let key = server.create_key("mira", &[]);
    let socket = connect(&server, Some(&format!("toolwright.v1, toolwright.key.{key}"))).await;
    let start = Message::text(json!({ "type": "start", "version": 1 }).to_string());
    assert_eq!(closed(socket, vec![start]).await.0, 4502, "authenticated, but the model cannot be reached");
    server
        .client
        .with("sec-websocket-protocol", "toolwright.key.tw_wrong")
        .get("/voice")
        .await
        .problem(401, "key");
}
