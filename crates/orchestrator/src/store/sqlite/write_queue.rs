//! The changes that wait for the writer thread, in the order in which they were decided.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::store::Result;
use crate::store::journal::{Change, LostChanges, PendingWrite};
use crate::store::records::Durability;

/// The most changes in one transaction.
const MAX_BATCH: usize = 4096;
/// While more bytes are queued, callers of relaxed changes wait too.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// How long changes without a waiter are collected. A longer delay saves commits, but lets slow calls wait for a longer
/// write on a machine with few cores.
const BATCH_DELAY: Duration = Duration::from_millis(6);
/// The approximate size of a change without its envelope.
const CHANGE_BYTES: usize = 512;

/// An operation for the writer thread, and its waiting caller.
#[derive(Debug)]
pub struct QueuedWrite {
    pub operation: WriteOperation,
    waiter: Option<oneshot::Sender<Result<()>>>,
}

#[derive(Debug)]
pub enum WriteOperation {
    Write(Change),
    /// Wakes its waiter once all earlier operations are done.
    Flush(LostChanges),
}

#[derive(Debug, Default)]
pub struct WriteQueue {
    state: Mutex<State>,
    is_ready: Condvar,
}

#[derive(Debug, Default)]
struct State {
    writes: VecDeque<QueuedWrite>,
    waiters: usize,
    bytes: usize,
    is_closed: bool,
    /// When to wake the writer.
    wake_at: Threshold,
}

/// This many operations, or this many waiters.
#[derive(Debug, Clone, Copy, Default)]
struct Threshold {
    writes: usize,
    waiters: usize,
}

impl WriteQueue {
    pub fn push(&self, change: Change, durability: Durability) -> PendingWrite {
        let state = self.lock();
        let must_wait =
            durability == Durability::Committed || state.bytes > MAX_QUEUED_BYTES || state.is_closed;
        self.add(state, WriteOperation::Write(change), must_wait)
    }

    pub fn push_flush(&self, lost: LostChanges) -> PendingWrite {
        self.add(self.lock(), WriteOperation::Flush(lost), true)
    }

    fn add(
        &self,
        mut state: MutexGuard<'_, State>,
        operation: WriteOperation,
        must_wait: bool,
    ) -> PendingWrite {
        let (waiter, written) = if must_wait {
            let (sender, receiver) = oneshot::channel();
            (Some(sender), PendingWrite::new(receiver))
        } else {
            (None, PendingWrite::READY)
        };
        if state.is_closed {
            // Dropping the sender fails the waiter.
            return written;
        }
        state.waiters += usize::from(waiter.is_some());
        let write = QueuedWrite { operation, waiter };
        state.bytes += write.bytes();
        state.writes.push_back(write);
        let is_ready = state.is_ready();
        drop(state);
        if is_ready {
            self.is_ready.notify_one();
        }
        written
    }

    /// Takes the next batch in order, and sleeps while there is none. `None` once the queue is closed and empty.
    ///
    /// While fewer than `expected_waiters` wait, it delays the batch by up to `delay`: callers that were woken last are
    /// about to write again, and one commit for all is cheaper than two.
    pub fn take(&self, expected_waiters: usize, delay: Duration) -> Option<Vec<QueuedWrite>> {
        let any = Threshold { writes: 1, waiters: 1 };
        let mut state = self.sleep(self.lock(), any, Duration::MAX);
        if state.waiters == 0 {
            state = self.sleep(state, Threshold { writes: MAX_BATCH, waiters: 1 }, BATCH_DELAY);
        }
        if state.waiters > 0 && state.waiters < expected_waiters {
            state = self.sleep(state, Threshold { writes: MAX_BATCH, waiters: expected_waiters }, delay);
        }
        let count = state.writes.len().min(MAX_BATCH);
        let batch: Vec<_> = state.writes.drain(..count).collect();
        state.waiters -= batch.iter().filter(|write| write.is_awaited()).count();
        state.bytes -= batch.iter().map(QueuedWrite::bytes).sum::<usize>();
        (!batch.is_empty()).then_some(batch)
    }

    /// Accepts no more operations; those in the queue can still be taken.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.is_ready.notify_one();
    }

    /// Accepts no more operations, and fails the waiters of those in the queue.
    pub fn abort(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.writes.clear();
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        wake_at: Threshold,
        timeout: Duration,
    ) -> MutexGuard<'a, State> {
        state.wake_at = wake_at;
        let is_asleep = |state: &mut State| !state.is_ready() && !state.is_closed;
        let woken = self.is_ready.wait_timeout_while(state, timeout, is_asleep);
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        // The writer is awake: pushes need not notify it.
        state.wake_at = Threshold { writes: usize::MAX, waiters: usize::MAX };
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_ready(&self) -> bool {
        self.writes.len() >= self.wake_at.writes || self.waiters >= self.wake_at.waiters
    }
}

impl QueuedWrite {
    pub const fn is_awaited(&self) -> bool {
        self.waiter.is_some()
    }

    pub const fn change(&self) -> Option<&Change> {
        match &self.operation {
            WriteOperation::Write(change) => Some(change),
            WriteOperation::Flush(_) => None,
        }
    }

    pub fn complete(self, outcome: Result<()>) {
        if let Some(waiter) = self.waiter {
            // The waiter may have gone away.
            let _ = waiter.send(outcome);
        }
    }

    fn bytes(&self) -> usize {
        match &self.operation {
            WriteOperation::Write(Change::Settlement { envelope, .. }) => CHANGE_BYTES + envelope.len(),
            WriteOperation::Write(Change::Log { entries, .. }) => {
                CHANGE_BYTES + entries.iter().map(|entry| entry.body.len()).sum::<usize>()
            }
            WriteOperation::Write(_) => CHANGE_BYTES,
            WriteOperation::Flush(_) => 0,
        }
    }
}
