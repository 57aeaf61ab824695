//! The bounded queue of messages to a provider. Too much audio drops the oldest; too many other messages end the
//! connection.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Maximum number of bytes of messages other than audio. One result may have a megabyte.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The queue between the bridge and the task that writes to the socket.
#[derive(Debug)]
pub(super) struct WriteQueue {
    max_audio_bytes: usize,
    state: Mutex<State>,
    changed: Notify,
    failed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queued: VecDeque<Queued>,
    audio_bytes: usize,
    message_bytes: usize,
    end: Option<QueueEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueEnd {
    /// After the queued messages.
    Closed,
    /// Immediately.
    Failed,
}

/// One frame to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Queued {
    Audio(String),
    Message(String),
    Ping,
}

impl WriteQueue {
    pub fn new(max_audio_bytes: usize) -> Self {
        Self { max_audio_bytes, state: Mutex::default(), changed: Notify::new(), failed: Notify::new() }
    }

    /// Queues audio. Returns the number of frames that were dropped to make space.
    pub fn push_audio(&self, text: String) -> usize {
        let mut state = self.lock_state();
        state.audio_bytes += text.len();
        state.queued.push_back(Queued::Audio(text));
        let mut dropped = 0;
        while state.audio_bytes > self.max_audio_bytes {
            let oldest = state.queued.iter().position(|queued| matches!(queued, Queued::Audio(_)));
            let Some(Queued::Audio(text)) = oldest.and_then(|oldest| state.queued.remove(oldest)) else {
                break;
            };
            state.audio_bytes -= text.len();
            dropped += 1;
        }
        drop(state);
        self.changed.notify_one();
        dropped
    }

    pub fn push(&self, queued: Queued) {
        let mut state = self.lock_state();
        if let Queued::Message(text) = &queued {
            state.message_bytes += text.len();
            if state.message_bytes > MAX_MESSAGE_BYTES {
                drop(state);
                return self.fail();
            }
        }
        state.queued.push_back(queued);
        drop(state);
        self.changed.notify_one();
    }

    /// The next frame; `None` when the connection is to be closed.
    pub async fn next(&self) -> Option<Queued> {
        loop {
            {
                let mut state = self.lock_state();
                if state.end == Some(QueueEnd::Failed) {
                    return None;
                }
                match state.queued.pop_front() {
                    Some(Queued::Audio(text)) => {
                        state.audio_bytes -= text.len();
                        return Some(Queued::Audio(text));
                    }
                    Some(Queued::Message(text)) => {
                        state.message_bytes -= text.len();
                        return Some(Queued::Message(text));
                    }
                    Some(Queued::Ping) => return Some(Queued::Ping),
                    None if state.end.is_some() => return None,
                    None => {}
                }
            }
            self.changed.notified().await;
        }
    }

    /// Closes the connection once all messages are written.
    pub fn close(&self) {
        self.lock_state().end.get_or_insert(QueueEnd::Closed);
        self.changed.notify_one();
    }

    /// Marks the connection as broken: nothing can be written.
    pub fn fail(&self) {
        self.lock_state().end = Some(QueueEnd::Failed);
        self.changed.notify_one();
        self.failed.notify_one();
    }

    /// Resolves when the connection is broken.
    pub async fn failed(&self) {
        loop {
            if self.lock_state().end == Some(QueueEnd::Failed) {
                return;
            }
            self.failed.notified().await;
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_audio_makes_room_and_messages_stay() {
        let queue = WriteQueue::new(8);
        assert_eq!(queue.push_audio("aaaa".to_owned()), 0);
        queue.push(Queued::Message("m".to_owned()));
        assert_eq!(queue.push_audio("bbbb".to_owned()), 0);
        assert_eq!(queue.push_audio("cccc".to_owned()), 1);
        queue.close();
        let mut written = Vec::new();
        while let Some(queued) = queue.next().await {
            written.push(queued);
        }
        let expected = [
            Queued::Message("m".to_owned()),
            Queued::Audio("bbbb".to_owned()),
            Queued::Audio("cccc".to_owned()),
        ];
        assert_eq!(written, expected);
    }

    #[tokio::test]
    async fn messages_without_end_fail_the_connection() {
        let queue = WriteQueue::new(8);
        for _ in 0..17 {
            queue.push(Queued::Message("m".repeat(1 << 20)));
        }
        queue.failed().await;
        assert_eq!(queue.next().await, None);
    }
}
