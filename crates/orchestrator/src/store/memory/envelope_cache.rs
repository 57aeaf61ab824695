//! Which envelopes are in memory: the newest, up to a number of bytes. Older ones are evicted and read from disk.

use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
pub struct EnvelopeCache {
    max_bytes: usize,
    bytes: usize,
    cached: VecDeque<CachedEnvelope>,
}

/// An execution whose envelope is in memory.
#[derive(Debug)]
pub struct CachedEnvelope {
    pub session: Arc<str>,
    pub execution: Arc<str>,
    pub bytes: usize,
}

impl EnvelopeCache {
    pub const fn new(max_bytes: usize) -> Self {
        Self { max_bytes, bytes: 0, cached: VecDeque::new() }
    }

    /// Adds an envelope, and returns those that have to be evicted for it.
    pub fn insert(&mut self, envelope: CachedEnvelope) -> Vec<CachedEnvelope> {
        let mut evicted = Vec::new();
        self.bytes += envelope.bytes;
        self.cached.push_back(envelope);
        while self.bytes > self.max_bytes
            && let Some(oldest) = self.cached.pop_front()
        {
            self.bytes -= oldest.bytes;
            evicted.push(oldest);
        }
        evicted
    }
}
