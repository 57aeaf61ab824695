//! Client input and output, and the bounded output queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

/// Maximum number of queued bytes for the client. Beyond it, reading from the model pauses.
pub(crate) const MAX_WAITING_BYTES: usize = 2 << 20;
/// The size of a message without audio, excluding its texts.
const MESSAGE_BYTES: usize = 256;

/// A client's messages after `start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientInput {
    /// PCM at the sample rate of the client.
    Audio(Vec<u8>),
    /// The playback position of an item.
    Played {
        item: String,
        ms: u64,
    },
    FarewellPlayed,
    Interrupt,
    Confirm {
        id: String,
        approved: bool,
    },
    Text(String),
    Mute(bool),
    Stop,
}

/// The messages to a client.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientOutput {
    Ready(SessionReady),
    Transcript {
        speaker: Speaker,
        text: String,
        is_final: bool,
        is_interrupted: bool,
    },
    AudioStarted {
        item: String,
    },
    /// PCM at the sample rate of the client.
    Audio(Vec<u8>),
    AudioEnded {
        item: String,
        ms: u64,
    },
    Interrupted {
        item: String,
    },
    ToolStarted {
        call_id: String,
        tool: String,
    },
    ToolFinished {
        call_id: String,
        tool: String,
        error: Option<String>,
    },
    ConfirmationRequested(ConfirmationPrompt),
    ConfirmationDecided {
        id: String,
        outcome: Outcome,
        by: DecidedBy,
    },
    /// Set by a tool for the next turn, or sent by one as data.
    Message {
        text: Option<String>,
        data: Option<Value>,
    },
    Suppressed {
        audio: bool,
        transcript: bool,
    },
    Reconnecting,
    Reconnected,
    /// The client is blocked until this time, in milliseconds since 1970.
    Timeout {
        until: i64,
        left_ms: i64,
        message: Option<String>,
    },
    Ending {
        reason: EndReason,
        has_farewell: bool,
    },
    Ended {
        reason: EndReason,
    },
    Warning {
        code: &'static str,
        message: String,
    },
    /// The connection is over, with the reason. Nothing follows.
    Closed(CloseReason),
}

/// The session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReady {
    pub session: String,
    pub resume_token: String,
    pub is_resumed: bool,
    pub input_rate: u32,
    pub output_rate: u32,
    pub grace_s: u64,
    pub idle_s: u64,
    pub max_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Assistant,
}

/// A confirmation request, as it is shown to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmationPrompt {
    pub id: String,
    pub tool: String,
    pub args: Value,
    pub preview: String,
    /// In milliseconds since 1970.
    pub expires_at: i64,
}

/// The outcome of a confirmation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Approved,
    Rejected,
    Expired,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// Who has answered a confirmation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    Voice,
    Screen,
    /// Through another wire, such as REST.
    Elsewhere,
    /// The request has expired.
    Expiry,
}

impl DecidedBy {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Screen => "screen",
            Self::Elsewhere => "elsewhere",
            Self::Expiry => "nobody",
        }
    }
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    Stopped,
    Tool,
    Blocked,
    Idle,
    MaxDuration,
    Provider,
    Elsewhere,
    Shutdown,
    /// The client did not reconnect. No event is sent.
    Abandoned,
}

impl EndReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Tool => "tool",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
            Self::MaxDuration => "max_duration",
            Self::Provider => "provider",
            Self::Elsewhere => "elsewhere",
            Self::Shutdown => "shutdown",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Why the session closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The session has ended; the client has the reason.
    Ended,
    /// Another connection has resumed the session.
    Replaced,
    /// The server shuts down; the session may be continued later.
    Shutdown,
}

/// The queue of a client's messages. Outlives its connections.
#[derive(Debug, Default)]
pub struct ClientQueue {
    state: Mutex<State>,
    changed: Notify,
    drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    queued: VecDeque<ClientOutput>,
    bytes: usize,
}

impl ClientQueue {
    /// The next output. Cancel-safe.
    pub async fn next(&self) -> ClientOutput {
        loop {
            {
                let mut state = self.lock_state();
                if let Some(output) = state.queued.pop_front() {
                    state.bytes -= size(&output);
                    drop(state);
                    self.drained.notify_one();
                    return output;
                }
            }
            self.changed.notified().await;
        }
    }

    pub(crate) fn push(&self, output: ClientOutput) {
        let mut state = self.lock_state();
        state.bytes += size(&output);
        state.queued.push_back(output);
        drop(state);
        self.changed.notify_one();
    }

    /// Inserts at the front: the first message of a new connection.
    pub(crate) fn push_first(&self, output: ClientOutput) {
        let mut state = self.lock_state();
        state.bytes += size(&output);
        state.queued.push_front(output);
        drop(state);
        self.changed.notify_one();
    }

    /// Moves all queued messages to another queue.
    pub(crate) fn move_to(&self, other: &Self) {
        let waiting = std::mem::take(&mut *self.lock_state());
        let mut state = other.lock_state();
        state.bytes += waiting.bytes;
        state.queued.extend(waiting.queued);
        drop(state);
        other.changed.notify_one();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock_state().bytes >= MAX_WAITING_BYTES
    }

    /// Resolves when the queue has space.
    pub(crate) async fn has_room(&self) {
        while self.is_full() {
            self.drained.notified().await;
        }
    }

    /// Drops the queued audio.
    pub(crate) fn drop_audio(&self) {
        let mut state = self.lock_state();
        state.queued.retain(|output| !matches!(output, ClientOutput::Audio(_)));
        state.bytes = state.queued.iter().map(size).sum();
        drop(state);
        self.drained.notify_one();
    }

    /// While no client is connected: drops the oldest audio beyond the limit.
    pub(crate) fn trim(&self) {
        let mut state = self.lock_state();
        while state.bytes >= MAX_WAITING_BYTES {
            let oldest = state.queued.iter().position(|output| matches!(output, ClientOutput::Audio(_)));
            let Some(output) = oldest.and_then(|oldest| state.queued.remove(oldest)) else { break };
            state.bytes -= size(&output);
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(output: &ClientOutput) -> usize {
    MESSAGE_BYTES
        + match output {
            ClientOutput::Audio(pcm) => pcm.len(),
            ClientOutput::Transcript { text, .. } => text.len(),
            ClientOutput::Message { .. } => 4096,
            ClientOutput::ConfirmationRequested(question) => question.preview.len() + 1024,
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_is_bounded_and_interruption_drops_only_audio() {
        let queue = ClientQueue::default();
        for _ in 0..40 {
            queue.push(ClientOutput::Audio(vec![0; 64 << 10]));
        }
        queue.push(ClientOutput::Reconnecting);
        assert!(queue.is_full());
        queue.trim();
        assert!(!queue.is_full());
        queue.has_room().await;
        queue.drop_audio();
        queue.push_first(ClientOutput::Reconnected);
        assert_eq!(queue.next().await, ClientOutput::Reconnected);
        assert_eq!(queue.next().await, ClientOutput::Reconnecting);
        assert_eq!(queue.lock_state().bytes, 0);
    }
}
