//! `GET /voice`: a WebSocket between a client and the voice agent. `docs/reference/voice-protocol.md` describes it.

mod client_message;
mod handshake;
mod server_message;
mod socket;

use std::sync::Arc;

use hyper::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use toolwright_agent::voice::{StartError, VoiceAgent};
use toolwright_contract::Principal;

use crate::app::App;
use crate::body;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

pub(crate) use handshake::key_as_authorization;

/// The largest frame of a client.
const MAX_FRAME_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 4 << 10;

/// A connection whose request was accepted.
struct Caller {
    app: Arc<App>,
    voice: VoiceAgent,
    principal: Arc<Principal>,
    /// With the credentials, which may be revoked while the connection is open.
    headers: HeaderMap,
}

pub(crate) async fn connect(request: ApiRequest<'_>) -> ApiResult {
    let head = request.head;
    let voice = request.app.options.voice.as_ref().ok_or_else(|| {
        let detail = "No voice model is configured: set `[voice] provider` to \"gemini-live\", \"openai-realtime\" or \
            \"gpt-live\" in toolwright.toml, and the environment variable that has its key.";
        Problem::new(Kind::UNAVAILABLE, detail)
    })?;
    let key = handshake::check(&head.method, &head.headers)?;
    if request.app.is_shutting_down() {
        return Err(Problem::new(Kind::UNAVAILABLE, "The server shuts down."));
    }
    let principal = request.principal()?;
    voice.check_limits(principal).map_err(|error| {
        let kind = match error {
            StartError::TooMany(_) => Kind::TOO_MANY_REQUESTS,
            _ => Kind::UNAVAILABLE,
        };
        Problem::new(kind, format!("{error}."))
    })?;
    let upgrade = head.extensions.get::<OnUpgrade>().cloned();
    let upgrade =
        upgrade.ok_or_else(|| Problem::new(Kind::UPGRADE_REQUIRED, "The connection cannot be upgraded."))?;
    let caller = Caller {
        app: Arc::clone(request.app),
        voice: voice.clone(),
        principal: Arc::clone(principal),
        headers: key_as_authorization(&head.headers).unwrap_or_else(|| head.headers.clone()),
    };
    let counted = Arc::clone(&request.app.voice_sockets);
    tokio::spawn(async move {
        let _counted = counted;
        // A client that disconnects at this point has not begun anything.
        if let Ok(upgraded) = upgrade.await {
            let config = WebSocketConfig::default()
                .read_buffer_size(BUFFER_BYTES)
                .write_buffer_size(BUFFER_BYTES)
                .max_frame_size(Some(MAX_FRAME_BYTES))
                .max_message_size(Some(MAX_FRAME_BYTES));
            let io = TokioIo::new(upgraded);
            let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
            socket::serve(caller, socket).await;
        }
    });
    let mut response = body::no_content();
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    accept(&mut response, &key, &head.headers);
    Ok(response)
}

fn accept<B>(response: &mut Response<B>, key: &str, request: &HeaderMap) {
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accepted) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    }
    if handshake::offers_protocol(request) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(handshake::PROTOCOL));
    }
}
