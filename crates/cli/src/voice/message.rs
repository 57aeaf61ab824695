//! The messages of the voice protocol, as far as this client needs them.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ServerMessage {
    Ready {
        session_id: String,
    },
    Transcript {
        role: String,
        text: String,
        #[serde(rename = "final")]
        is_final: bool,
        #[serde(default)]
        interrupted: bool,
    },
    AudioStarted {
        item: String,
    },
    AudioEnded {
        item: String,
    },
    Interrupted {},
    ToolStarted {
        call_id: String,
        tool: String,
    },
    ToolFinished {
        call_id: String,
        tool: String,
        ok: bool,
        error: Option<String>,
    },
    ConfirmationRequested {
        id: String,
        tool: String,
        #[serde(default)]
        args: Value,
        preview: String,
    },
    ConfirmationDecided {
        id: String,
        outcome: String,
        by: String,
    },
    /// Text for the user, or the data that a tool has sent.
    Message {
        text: Option<String>,
        data: Option<Value>,
    },
    Timeout {
        until: String,
        seconds: u64,
        message: Option<String>,
    },
    Ending {
        farewell: bool,
    },
    Ended {
        reason: String,
    },
    Error {
        code: String,
        message: String,
    },
    #[serde(other)]
    Unknown,
}
