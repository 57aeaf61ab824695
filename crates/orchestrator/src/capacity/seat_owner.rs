//! Who shares the seats of a level: a principal, one of its tools, a tool, or a root call. The lock of the level guards
//! the counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OwnerKind {
    Principal,
    /// A tool as one principal uses it: has no limit of its own, but its turn among the principal's tools.
    ToolOfPrincipal,
    Tool,
    Call,
}

pub(crate) type OwnerKey = (OwnerKind, String);

/// An owner that has calls running or waiting.
#[derive(Debug)]
pub(crate) struct SeatOwner {
    pub kind: OwnerKind,
    pub key: String,
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// When one of its calls last got a seat. A new owner comes after those that wait already.
    served_at: AtomicU64,
}

impl SeatOwner {
    pub fn new((kind, key): OwnerKey, served_at: u64) -> Self {
        let (running, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { kind, key, running, waiting, served_at: AtomicU64::new(served_at) }
    }

    /// The tool's id.
    pub fn name(&self) -> &str {
        &self.key
    }

    pub fn running(&self) -> usize {
        self.running.load(Relaxed)
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    pub fn served_at(&self) -> u64 {
        self.served_at.load(Relaxed)
    }

    pub fn is_idle(&self) -> bool {
        self.running() == 0 && self.waiting() == 0
    }

    pub fn start(&self, at: u64) {
        self.running.fetch_add(1, Relaxed);
        self.served_at.store(at, Relaxed);
    }

    pub fn count_end(&self) {
        self.running.fetch_sub(1, Relaxed);
    }

    pub fn count_waiting(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    pub fn stop_waiting(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}
