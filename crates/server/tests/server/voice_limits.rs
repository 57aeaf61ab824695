//! Close codes of a running voice session: bad input, peers that are slow or gone, sessions that are over.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};
use toolwright_agent::voice::{VoiceAgent, VoiceSection};
use toolwright_agent::{Agent, AgentOptions, Model};
use toolwright_server::Options;

use super::scripted_voice::{ModelSide, ScriptedVoice};
use super::support::{TestServer, orchestrator};

type Socket = WebSocketStream<TcpStream>;

async fn server(url: &str, slow_client_s: u32) -> TestServer {
    let (runs, permits) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
    let orchestrator = orchestrator(&runs, &permits);
    let agent = Agent::new(orchestrator.clone(), Model::Offline, AgentOptions::default());
    let section = json!({ "provider": "gemini-live", "url": url, "slow_client_s": slow_client_s,
        "sessions_per_principal": 50 });
    let section: VoiceSection = serde_json::from_value(section).unwrap();
    let voice = VoiceAgent::new(agent.clone(), section.options(&|_| None).unwrap().unwrap());
    let change = |options: &mut Options| {
        options.agent = Some(agent);
        options.voice = Some(voice);
    };
    TestServer::set_up(orchestrator, runs, permits, change, None).await
}

async fn connect(server: &TestServer, key: Option<&str>) -> Socket {
    let mut request = format!("ws://{}/voice", server.client.address).into_client_request().unwrap();
    if let Some(key) = key {
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    }
    let stream = TcpStream::connect(server.client.address).await.unwrap();
    client_async(request, stream).await.unwrap().0
}

fn start() -> Message {
    Message::text(json!({ "type": "start", "version": 1 }).to_string())
}

/// A session that runs, with its id.
async fn session(
    server: &TestServer,
    model: &mut ScriptedVoice,
    key: Option<&str>,
) -> (Socket, ModelSide, String) {
    let mut socket = connect(server, key).await;
    socket.send(start()).await.unwrap();
    let model = model.accept().await;
    let Some(Ok(Message::Text(ready))) = socket.next().await else { panic!("not ready") };
    let ready: Value = serde_json::from_str(&ready).unwrap();
    assert_eq!(ready["type"], "ready");
    (socket, model, ready["sessionId"].as_str().unwrap().to_owned())
}

/// Reads to the end: the close code, and code and message of the error before it.
async fn end(mut socket: Socket) -> (u16, String, String) {
    let mut error = Value::Null;
    while let Some(frame) = socket.next().await {
        match frame.unwrap() {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == "error" {
                    error = message;
                }
            }
            Message::Close(Some(frame)) => {
                let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
                return (frame.code.into(), text("code"), text("message"));
            }
            _ => {}
        }
    }
    panic!("closed without a code")
}

#[tokio::test]
async fn bad_input_in_a_running_session_has_its_close_code_and_message() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 10).await;
    // The sessions go on without their clients, and must not lose their model.
    let mut connections = Vec::new();
    let text = |value: Value| Message::text(value.to_string());
    for (frame, code, error, message) in [
        (start(), 4400, "already_started", "a session is started once on a connection"),
        (Message::Binary(vec![0; 3].into()), 4400, "odd_frame", "whole samples of 16 bits"),
        (
            Message::Binary(vec![0; 10 << 20].into()),
            4413,
            "frame_too_large",
            "larger than the limit of 65536",
        ),
        (Message::text("x".repeat(70_000)), 4413, "frame_too_large", "larger than the limit of 65536"),
        (Message::text("RIFF\u{1}WAVE"), 4400, "invalid_json", "A text frame must be one JSON object"),
        (text(json!({ "type": "audio" })), 4400, "unknown_type", "There is no message of type `audio`"),
        (text(json!({ "type": "stop", "x": 1 })), 4400, "unknown_field", "`stop` has no field `x`"),
        (text(json!({ "type": "text" })), 4400, "missing_field", "`text` is missing"),
        (text(json!({ "type": "mute", "muted": 1 })), 4400, "invalid_field", "`muted` must be true or false"),
    ] {
        let (mut socket, connection, id) = session(&server, &mut model, None).await;
        connections.push(connection);
        // The server may close before it has read all of it.
        let _ = socket.send(frame).await;
        let found = end(socket).await;
        assert_eq!((found.0, found.1.as_str()), (code, error), "{}", found.2);
        assert!(found.2.contains(message), "{}", found.2);
        // Nothing is lost.
        let session = server.client.get(&format!("/v1/sessions/{id}")).await.expect(200);
        assert_eq!(session["standing"], "active");
    }
}

#[tokio::test]
async fn a_client_that_sends_too_many_messages_is_told_so() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 10).await;
    let (mut socket, _model, _) = session(&server, &mut model, None).await;
    for _ in 0..300 {
        let _ = socket.feed(Message::text(r#"{"type":"ping"}"#)).await;
    }
    let _ = socket.flush().await;
    let (code, error, message) = end(socket).await;
    assert_eq!(
        (code, error.as_str(), message.as_str()),
        (4429, "too_fast", "More than 200 text messages in a second.")
    );
}

#[tokio::test]
async fn a_session_that_has_ended_cannot_be_continued() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 10).await;
    let (mut socket, _model, id) = session(&server, &mut model, None).await;
    socket.send(Message::text(r#"{"type":"stop"}"#)).await.unwrap();
    assert_eq!(end(socket).await.0, 1000);
    let mut socket = connect(&server, None).await;
    let again = json!({ "type": "start", "version": 1, "sessionId": id });
    socket.send(Message::text(again.to_string())).await.unwrap();
    let (code, error, message) = end(socket).await;
    assert_eq!((code, error.as_str()), (4410, "session_ended"));
    assert!(message.contains("start one without `sessionId`"), "{message}");
}

#[tokio::test]
async fn a_key_that_the_provider_refuses_is_not_told_to_the_client() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let server = server(&url, 10).await;
    let mut socket = connect(&server, None).await;
    socket.send(start()).await.unwrap();
    let (code, error, message) = end(socket).await;
    assert_eq!((code, error.as_str()), (4502, "provider_unavailable"));
    assert!(message.contains("tell the operator") && !message.contains("401"), "{message}");
}

#[tokio::test]
async fn a_client_that_does_not_start_is_disconnected() {
    let server = server("ws://127.0.0.1:1", 10).await;
    let socket = connect(&server, None).await;
    tokio::time::pause();
    let (code, error, message) = end(socket).await;
    let expected = (4408, "start_timeout", "`start` must arrive within 10 s.");
    assert_eq!((code, error.as_str(), message.as_str()), expected);
}

#[tokio::test]
async fn a_half_open_connection_is_found_by_its_missing_pongs() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 10).await;
    let (mut socket, _model, _) = session(&server, &mut model, None).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    // The bytes are read, and no ping is answered.
    let mut bytes = Vec::new();
    socket.get_mut().read_to_end(&mut bytes).await.unwrap();
    let pings = bytes.windows(2).filter(|frame| *frame == [0x89, 0]).count();
    assert!(pings >= 3, "{bytes:?}");
    let seconds = began.elapsed().as_secs();
    assert!((29..=40).contains(&seconds), "after {seconds} s: at the first ping after 30 s without a frame");
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_disconnected_and_holds_up_the_model_meanwhile() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 1).await;
    let (socket, model, _) = session(&server, &mut model, None).await;
    // More than the queue and all buffers of the sockets hold.
    let audio = "AAEAAQ".repeat(50_000);
    let part = json!({ "inlineData": { "mimeType": "audio/pcm;rate=24000", "data": audio } });
    for _ in 0..120 {
        model.send(json!({ "serverContent": { "modelTurn": { "parts": [part.clone()] } } }));
    }
    tokio::time::pause();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    tokio::time::resume();
    let (code, error, message) = end(socket).await;
    assert_eq!(
        (code, error.as_str(), message.as_str()),
        (4429, "slow_client", "The client took no data for 1 s.")
    );
}

#[tokio::test]
async fn a_revoked_key_ends_a_running_session() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 10).await;
    let key = server.create_key("mira", &[]);
    let (socket, _model, _) = session(&server, &mut model, Some(&key)).await;
    for key in server.keys.list().unwrap() {
        server.keys.revoke(&key.id).unwrap();
    }
    let (close, code, message) = tokio::time::timeout(Duration::from_secs(20), end(socket)).await.unwrap();
    assert_eq!((close, code.as_str()), (4401, "unauthenticated"), "{message}");
    assert!(message.contains("revoked"), "{message}");
}

#[tokio::test]
async fn a_client_that_is_blocked_by_voice_is_refused_in_writing_too() {
    let mut model = ScriptedVoice::start().await;
    let server = server(&model.url, 10).await;
    let chat = async |client: &str, id: &str| {
        let message = json!({ "id": format!("m {client} {id}"), "role": "user",
            "parts": [{ "type": "text", "text": "Hello" }] });
        server.client.post("/api/chat", json!({ "id": id, "clientId": client, "messages": [message] })).await
    };
    assert_eq!(chat("browser", "before").await.status, 200);
    let mut socket = connect(&server, None).await;
    let start = json!({ "type": "start", "version": 1, "clientId": "browser" });
    socket.send(Message::text(start.to_string())).await.unwrap();
    let mut model = model.accept().await;
    let until = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let block = json!({ "type": "timeout", "durationSeconds": 3600,
        "timeoutUntil": u64::try_from(until).unwrap() + 3_600_000 });
    model.hears("something rude");
    model.calls(&[("b1", "write", json!({ "send": block }))]);
    assert!(model.result().await.1.get("output").is_some());
    for id in ["before", "after"] {
        let refused = chat("browser", id).await;
        assert_eq!(refused.status, 403, "{id}: {refused:?}");
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(chat("another", "other").await.status, 200);
}
