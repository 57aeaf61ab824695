//! One WebSocket: the first message, then frames in both directions until either side ends it.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Bytes, Message};
use toolwright_agent::voice::{ClientInput, StartError, StartRequest, VoiceClient};

use super::client_message::{ClientMessage, ProtocolError, Start, parse};
use super::server_message::{self as encode, Close};
use super::{Caller, MAX_FRAME_BYTES};

const START_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Timeout without any frame: the connection is half-open.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the close handshake may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of text messages of a client in a second.
const MAX_MESSAGES: u32 = 200;

type Socket = WebSocketStream<TokioIo<Upgraded>>;
type Sink = SplitSink<Socket, Message>;

/// Serves a connection to its end.
pub(super) async fn serve(caller: Caller, socket: Socket) {
    let (mut sink, mut frames) = socket.split();
    let close = match open(&caller, &mut sink, &mut frames).await {
        Ok(client) => run(&caller, client, &mut sink, &mut frames).await,
        Err(close) => close,
    };
    if let Some(close) = close {
        // The client may be gone.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, say_goodbye(close, sink, frames)).await;
    }
}

/// Sends the close frame, and reads on until the client has seen it: a connection that is closed with unread data is
/// reset, and the client would not learn why.
async fn say_goodbye(
    close: Close,
    mut sink: Sink,
    mut frames: SplitStream<Socket>,
) -> Result<(), tungstenite::Error> {
    if let Some(error) = &close.error {
        sink.send(encode::error(error)).await?;
    }
    let frame = CloseFrame { code: close.code.into(), reason: close.reason.into() };
    sink.send(Message::Close(Some(frame))).await?;
    while let Some(Ok(frame)) = frames.next().await {
        if matches!(frame, Message::Close(_)) {
            return Ok(());
        }
    }
    // After a frame that was too large, nothing can be read as frames.
    if let Ok(mut socket) = sink.reunite(frames) {
        let mut rest = vec![0; 16 << 10];
        while socket.get_mut().read(&mut rest).await.is_ok_and(|count| count > 0) {}
    }
    Ok(())
}

/// Waits for `start` and opens the session. `Err(None)`: the client has disconnected.
async fn open(
    caller: &Caller,
    sink: &mut Sink,
    frames: &mut SplitStream<Socket>,
) -> Result<VoiceClient, Option<Close>> {
    let first = tokio::time::timeout(START_TIMEOUT, first_message(frames)).await;
    let start = first.unwrap_or_else(|_| {
        let message = format!("`start` must arrive within {} s.", START_TIMEOUT.as_secs());
        Err(Some(Close::error(4408, ProtocolError::new("start_timeout", message))))
    })?;
    let Start { session, resume_token, client_id, input_rate, output_rate, language } = start;
    let request = StartRequest {
        principal: caller.principal.clone(),
        session,
        resume_token,
        client_id,
        input_rate,
        output_rate,
        language,
    };
    match caller.voice.start(request).await {
        Ok(client) => Ok(client),
        Err(error) => {
            if let StartError::Blocked(left_ms) = error {
                let until = caller.app.orchestrator.now() + left_ms;
                // If it cannot be sent, the close frame cannot either.
                let _ = sink.send(encode::timeout(until, left_ms, None)).await;
            }
            Err(Some(refusal(&error)))
        }
    }
}

async fn first_message(frames: &mut SplitStream<Socket>) -> Result<Start, Option<Close>> {
    loop {
        match frames.next().await {
            Some(Ok(Message::Text(text))) => match parse(&text) {
                Ok(ClientMessage::Start(start)) => return Ok(start),
                Ok(_) => return Err(Some(not_started())),
                Err(error) => return Err(Some(Close::error(4400, error))),
            },
            Some(Ok(Message::Binary(_))) => return Err(Some(not_started())),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Err(error)) => return Err(close_for_error(&error)),
            Some(Ok(_)) | None => return Err(None),
        }
    }
}

fn not_started() -> Close {
    Close::error(
        4400,
        ProtocolError::new("not_started", "The first message must be `start`; audio follows after `ready`."),
    )
}

fn refusal(error: &StartError) -> Close {
    let (code, word) = match error {
        StartError::UnknownSession(_) => (4404, "unknown_session"),
        StartError::SessionEnded(_) => (4410, "session_ended"),
        StartError::InUse => (4409, "session_in_use"),
        StartError::Blocked(_) => (4403, "blocked"),
        StartError::TooMany(_) | StartError::Full(_) => (4429, "too_many_sessions"),
        StartError::Provider => (4502, "provider_unavailable"),
        _ => (4500, "internal"),
    };
    Close::error(code, ProtocolError::new(word, format!("{error}.")))
}

/// The close for a frame that cannot be read. `None`: the client is gone.
fn close_for_error(error: &tungstenite::Error) -> Option<Close> {
    match error {
        tungstenite::Error::Capacity(CapacityError::MessageTooLong { size, .. }) => {
            let message = format!("A frame of {size} bytes is larger than the limit of {MAX_FRAME_BYTES}.");
            Some(Close::error(4413, ProtocolError::new("frame_too_large", message)))
        }
        tungstenite::Error::Utf8(_) => {
            Some(Close::error(4400, ProtocolError::new("invalid_json", "A text frame must be UTF-8.")))
        }
        _ => None,
    }
}

/// Counts the text messages in the current second.
struct MessageRate {
    since: Instant,
    count: u32,
}

/// Carries frames in both directions. Returns how the connection ends; `None` when the client is gone.
async fn run(
    caller: &Caller,
    client: VoiceClient,
    sink: &mut Sink,
    frames: &mut SplitStream<Socket>,
) -> Option<Close> {
    let mut ping = tokio::time::interval(PING_INTERVAL);
    let mut last_frame = Instant::now();
    let mut rate = MessageRate { since: Instant::now(), count: 0 };
    let slow_client = caller.voice.options().slow_client;
    let credentials = crate::service::end_of_credentials(caller.app.clone(), caller.headers.clone());
    tokio::pin!(credentials);
    loop {
        let message = tokio::select! {
            output = client.output.next() => match encode::encode(output) {
                Ok(message) => message,
                Err(close) => return Some(close),
            },
            frame = frames.next() => {
                last_frame = Instant::now();
                match read(frame, &mut rate) {
                    Ok(Some(FrameEvent::Input(input))) => {
                        // The session has ended; the queue says how.
                        let _ = client.input.send(input).await;
                        continue;
                    }
                    Ok(Some(FrameEvent::Reply(message))) => message,
                    Ok(None) => continue,
                    Err(close) => return close,
                }
            }
            _ = ping.tick() => {
                if last_frame.elapsed() > READ_TIMEOUT {
                    return None;
                }
                Message::Ping(Bytes::new())
            }
            () = &mut credentials => {
                let message = "The key was revoked or the token has expired: authenticate again, then resume.";
                return Some(Close::error(4401, ProtocolError::new("unauthenticated", message)));
            }
        };
        if let Err(close) = send(sink, message, slow_client).await {
            return close;
        }
    }
}

/// Sends a frame. A client that takes nothing for so long is disconnected.
async fn send(sink: &mut Sink, message: Message, patience: Duration) -> Result<(), Option<Close>> {
    match tokio::time::timeout(patience, sink.send(message)).await {
        Ok(sent) => sent.map_err(|_| None),
        Err(_) => {
            let message = format!("The client took no data for {} s.", patience.as_secs());
            Err(Some(Close::error(4429, ProtocolError::new("slow_client", message))))
        }
    }
}

enum FrameEvent {
    Input(ClientInput),
    /// To be sent back at once.
    Reply(Message),
}

fn read(
    frame: Option<Result<Message, tungstenite::Error>>,
    rate: &mut MessageRate,
) -> Result<Option<FrameEvent>, Option<Close>> {
    match frame {
        Some(Ok(Message::Binary(pcm))) if pcm.len() % 2 == 1 => {
            let message = "A binary frame must hold whole samples of 16 bits.";
            Err(Some(Close::error(4400, ProtocolError::new("odd_frame", message))))
        }
        Some(Ok(Message::Binary(pcm))) => Ok(Some(FrameEvent::Input(ClientInput::Audio(pcm.to_vec())))),
        Some(Ok(Message::Text(text))) => {
            if rate.since.elapsed() >= Duration::from_secs(1) {
                *rate = MessageRate { since: Instant::now(), count: 0 };
            }
            rate.count += 1;
            if rate.count > MAX_MESSAGES {
                let message = format!("More than {MAX_MESSAGES} text messages in a second.");
                return Err(Some(Close::error(4429, ProtocolError::new("too_fast", message))));
            }
            match parse(&text) {
                Ok(ClientMessage::Input(input)) => Ok(Some(FrameEvent::Input(input))),
                Ok(ClientMessage::Ping { id }) => Ok(Some(FrameEvent::Reply(encode::pong(id)))),
                Ok(ClientMessage::Start(_)) => {
                    let message = "`start` was sent before; a session is started once on a connection.";
                    Err(Some(Close::error(4400, ProtocolError::new("already_started", message))))
                }
                Err(error) => Err(Some(Close::error(4400, error))),
            }
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Err(None),
        Some(Err(error)) => Err(close_for_error(&error)),
    }
}
