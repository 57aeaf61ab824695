//! Which envelopes are in memory: the newest, up to a number of bytes. Older ones are read from disk when asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::locked;

#[derive(Debug)]
pub struct Recent {
    room: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: usize,
    calls: VecDeque<Call>,
}

/// A call whose envelope is in memory.
#[derive(Debug)]
pub struct Call {
    pub session: Arc<str>,
    pub execution: Arc<str>,
    bytes: usize,
}

impl Recent {
    pub fn new(room: usize) -> Self {
        Self { room, queue: Mutex::default() }
    }

    /// Notes a call, and gives those whose envelopes have to leave for it.
    pub fn push(&self, session: &str, execution: &str, bytes: usize) -> Vec<Call> {
        if self.room == usize::MAX {
            return Vec::new();
        }
        let mut queue = locked(&self.queue);
        queue.bytes += bytes;
        queue.calls.push_back(Call { session: session.into(), execution: execution.into(), bytes });
        let mut leaving = Vec::new();
        while queue.bytes > self.room
            && let Some(oldest) = queue.calls.pop_front()
        {
            queue.bytes -= oldest.bytes;
            leaving.push(oldest);
        }
        leaving
    }
}
