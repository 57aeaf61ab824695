//! The messages of the voice agent to a client, as frames.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use toolwright_agent::voice::{ClientOutput, CloseReason, ConfirmationPrompt, SessionReady, Speaker};

use super::MAX_FRAME_BYTES;
use super::client_message::{ProtocolError, VERSION};
use crate::chat::timestamp;

/// The end of a connection: the close frame, and an error before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Close {
    pub code: u16,
    /// The reason in the close frame; at most 123 bytes.
    pub reason: String,
    /// The `error` message that is sent before the close frame.
    pub error: Option<ProtocolError>,
}

impl Close {
    /// A close that is preceded by an `error` message.
    pub fn error(code: u16, error: ProtocolError) -> Self {
        Self { code, reason: error.code.to_owned(), error: Some(error) }
    }

    pub fn from_reason(reason: CloseReason) -> Self {
        let (code, word) = match reason {
            CloseReason::Ended => (1000, "ended"),
            CloseReason::Shutdown => (1001, "shutdown"),
            CloseReason::Replaced => {
                return Self::error(
                    4409,
                    ProtocolError::new("replaced", "Another connection has resumed the session."),
                );
            }
        };
        Self { code, reason: word.to_owned(), error: None }
    }
}

pub(super) fn error(cause: &ProtocolError) -> Message {
    let mut error = json!({ "type": "error", "code": cause.code, "message": cause.message });
    if let Some(field) = &cause.field {
        error["field"] = field.as_str().into();
    }
    Message::text(error.to_string())
}

pub(super) fn pong(id: Option<String>) -> Message {
    let mut pong = json!({ "type": "pong" });
    if let Some(id) = id {
        pong["id"] = id.into();
    }
    Message::text(pong.to_string())
}

pub(super) fn timeout(until: i64, left_ms: i64, message: Option<&str>) -> Message {
    let mut timeout =
        json!({ "type": "timeout", "until": timestamp(until), "seconds": (left_ms + 999) / 1000 });
    if let Some(message) = message {
        timeout["message"] = message.into();
    }
    Message::text(timeout.to_string())
}

/// The frame of an output; [`ClientOutput::Closed`] has none.
pub(super) fn encode(output: ClientOutput) -> Result<Message, Close> {
    let message = match output {
        ClientOutput::Audio(pcm) => return Ok(Message::Binary(Bytes::from(pcm))),
        ClientOutput::Closed(reason) => return Err(Close::from_reason(reason)),
        ClientOutput::Timeout { until, left_ms, message } => {
            return Ok(timeout(until, left_ms, message.as_deref()));
        }
        ClientOutput::Ready(ready) => to_ready(&ready),
        ClientOutput::Transcript { speaker, text, is_final, is_interrupted } => {
            to_transcript(speaker, &text, is_final, is_interrupted)
        }
        ClientOutput::AudioStarted { item } => json!({ "type": "audio_started", "item": item }),
        ClientOutput::AudioEnded { item, ms } => json!({ "type": "audio_ended", "item": item, "ms": ms }),
        ClientOutput::Interrupted { item } => json!({ "type": "interrupted", "item": item }),
        ClientOutput::ToolStarted { call_id, tool } => {
            json!({ "type": "tool_started", "callId": call_id, "tool": tool })
        }
        ClientOutput::ToolFinished { call_id, tool, error } => {
            let mut message =
                json!({ "type": "tool_finished", "callId": call_id, "tool": tool, "ok": error.is_none() });
            if let Some(error) = error {
                message["error"] = error.into();
            }
            message
        }
        ClientOutput::ConfirmationRequested(question) => to_question(&question),
        ClientOutput::ConfirmationDecided { id, outcome, by } => {
            json!({ "type": "confirmation_decided", "id": id, "outcome": outcome.as_str(), "by": by.as_str() })
        }
        ClientOutput::Message { text, data } => to_message(text, data),
        ClientOutput::Suppressed { audio, transcript } => {
            json!({ "type": "suppressed", "audio": audio, "transcript": transcript })
        }
        ClientOutput::Reconnecting => json!({ "type": "reconnecting" }),
        ClientOutput::Reconnected => json!({ "type": "reconnected" }),
        ClientOutput::Ending { reason, has_farewell } => {
            json!({ "type": "ending", "reason": reason.as_str(), "farewell": has_farewell })
        }
        ClientOutput::Ended { reason } => json!({ "type": "ended", "reason": reason.as_str() }),
        ClientOutput::Warning { code, message } => {
            json!({ "type": "error", "code": code, "message": message })
        }
        // Of a newer voice agent.
        _ => Value::Null,
    };
    Ok(Message::text(message.to_string()))
}

fn to_transcript(speaker: Speaker, text: &str, is_final: bool, is_interrupted: bool) -> Value {
    let role = match speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    };
    let mut message = json!({ "type": "transcript", "role": role, "text": text, "final": is_final });
    if is_interrupted {
        message["interrupted"] = true.into();
    }
    message
}

fn to_ready(ready: &SessionReady) -> Value {
    json!({
        "type": "ready",
        "version": VERSION,
        "sessionId": ready.session,
        "resumeToken": ready.resume_token,
        "resumed": ready.is_resumed,
        "inputSampleRate": ready.input_rate,
        "outputSampleRate": ready.output_rate,
        "maxFrameBytes": MAX_FRAME_BYTES,
        "graceSeconds": ready.grace_s,
        "idleSeconds": ready.idle_s,
        "maxSeconds": ready.max_s,
    })
}

fn to_question(question: &ConfirmationPrompt) -> Value {
    let ConfirmationPrompt { id, tool, args, preview, expires_at } = question;
    json!({ "type": "confirmation_requested", "id": id, "tool": tool, "args": args, "preview": preview,
        "expiresAt": timestamp(*expires_at) })
}

fn to_message(text: Option<String>, data: Option<Value>) -> Value {
    let mut message = json!({ "type": "message" });
    if let Some(text) = text {
        message["text"] = text.into();
    }
    if let Some(data) = data {
        message["data"] = data;
    }
    message
}
