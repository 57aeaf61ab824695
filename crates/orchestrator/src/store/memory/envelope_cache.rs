//! Which envelopes are in memory: the newest, up to a number of bytes. Older ones are evicted and read from disk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::lock;

#[derive(Debug)]
pub struct EnvelopeCache {
    max_bytes: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: usize,
    cached: VecDeque<CachedEnvelope>,
}

/// An execution whose envelope is in memory.
#[derive(Debug)]
pub struct CachedEnvelope {
    pub session: Arc<str>,
    pub execution: Arc<str>,
    bytes: usize,
}

impl EnvelopeCache {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, queue: Mutex::default() }
    }

    /// Adds an envelope, and returns those that have to be evicted for it.
    pub fn insert(&self, session: &str, execution: &str, bytes: usize) -> Vec<CachedEnvelope> {
        if self.max_bytes == usize::MAX {
            return Vec::new();
        }
        let mut queue = lock(&self.queue);
        queue.bytes += bytes;
        queue.cached.push_back(CachedEnvelope {
            session: session.into(),
            execution: execution.into(),
            bytes,
        });
        let mut evicted = Vec::new();
        while queue.bytes > self.max_bytes
            && let Some(oldest) = queue.cached.pop_front()
        {
            queue.bytes -= oldest.bytes;
            evicted.push(oldest);
        }
        evicted
    }
}
