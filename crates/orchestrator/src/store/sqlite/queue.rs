//! The changes that wait for the writer, in the order in which they were decided.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::store::Result;
use crate::store::journal::{Change, Written};
use crate::store::records::Durability;

/// The most changes in one transaction.
const BATCH: usize = 4096;
/// When so many bytes wait, those who would not have to wait do.
const FULL: usize = 8 << 20;
/// How long changes that nobody waits for may be gathered. They are written in one go, during which a machine with few cores
/// does nothing else: a longer time would spare commits and be felt in the slowest calls.
const LINGER: Duration = Duration::from_millis(6);
/// What a change takes besides its envelope, about.
const CHANGE: usize = 512;

/// Something to do, and who waits for it.
#[derive(Debug)]
pub struct Item {
    pub task: Task,
    waiter: Option<oneshot::Sender<Result<()>>>,
}

#[derive(Debug)]
pub enum Task {
    Write(Change),
    /// Say when all before is done, and whether anything was lost.
    Flush,
    /// Say when all before is done.
    CatchUp,
}

#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    enough: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    waiters: usize,
    bytes: usize,
    is_closed: bool,
    /// What the sleeping writer wants to be woken for.
    wanted: Wanted,
}

/// So many items, or so many waiters.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    items: usize,
    waiters: usize,
}

impl Queue {
    pub fn push(&self, change: Change, durability: Durability) -> Written {
        let state = self.locked();
        let must_wait = durability == Durability::Committed || state.bytes > FULL || state.is_closed;
        self.add(state, Task::Write(change), must_wait)
    }

    pub fn push_flush(&self) -> Written {
        self.add(self.locked(), Task::Flush, true)
    }

    pub fn push_catch_up(&self) -> Written {
        self.add(self.locked(), Task::CatchUp, true)
    }

    fn add(&self, mut state: MutexGuard<'_, State>, task: Task, must_wait: bool) -> Written {
        let (waiter, written) = if must_wait {
            let (sender, receiver) = oneshot::channel();
            (Some(sender), Written::when(receiver))
        } else {
            (None, Written::NOW)
        };
        if state.is_closed {
            // The waiter is dropped, which tells whoever waits.
            return written;
        }
        state.waiters += usize::from(waiter.is_some());
        let item = Item { task, waiter };
        state.bytes += item.bytes();
        state.items.push_back(item);
        let is_enough = state.is_enough();
        drop(state);
        if is_enough {
            self.enough.notify_one();
        }
        written
    }

    /// Takes what waits, in order; sleeps while there is nothing. `None` when there will be nothing any more.
    ///
    /// When fewer than `expected` wait for an answer, it gives the others up to `patience` to come: those who were
    /// answered last are about to ask again, and one commit for all is cheaper than two.
    pub fn take(&self, expected: usize, patience: Duration) -> Option<Vec<Item>> {
        const ANY: Wanted = Wanted { items: 1, waiters: 1 };
        let mut state = self.sleep(self.locked(), ANY, Duration::MAX);
        if state.waiters == 0 {
            state = self.sleep(state, Wanted { items: BATCH, waiters: 1 }, LINGER);
        }
        if state.waiters > 0 && state.waiters < expected {
            state = self.sleep(state, Wanted { items: BATCH, waiters: expected }, patience);
        }
        let count = state.items.len().min(BATCH);
        let taken: Vec<_> = state.items.drain(..count).collect();
        state.waiters -= taken.iter().filter(|item| item.waiter.is_some()).count();
        let bytes: usize = taken.iter().map(Item::bytes).sum();
        state.bytes -= bytes;
        (!taken.is_empty()).then_some(taken)
    }

    /// Nothing more is taken in; what waits may still be taken out.
    pub fn close(&self) {
        self.locked().is_closed = true;
        self.enough.notify_one();
    }

    /// Nothing is taken in or out any more; whoever waits is told.
    pub fn abandon(&self) {
        let mut state = self.locked();
        state.is_closed = true;
        state.items.clear();
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        wanted: Wanted,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        let begun = Instant::now();
        state.wanted = wanted;
        while !state.is_enough() && !state.is_closed {
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            let woken = self.enough.wait_timeout(state, left);
            state = woken.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        // Awake: nobody needs to wake it.
        state.wanted = Wanted { items: usize::MAX, waiters: usize::MAX };
        state
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_enough(&self) -> bool {
        self.items.len() >= self.wanted.items || self.waiters >= self.wanted.waiters
    }
}

impl Item {
    pub const fn is_awaited(&self) -> bool {
        self.waiter.is_some()
    }

    pub const fn change(&self) -> Option<&Change> {
        match &self.task {
            Task::Write(change) => Some(change),
            Task::Flush | Task::CatchUp => None,
        }
    }

    /// Tells whoever waits.
    pub fn answer(self, outcome: Result<()>) {
        if let Some(waiter) = self.waiter {
            // Whoever has stopped waiting does not want to know.
            let _ = waiter.send(outcome);
        }
    }

    fn bytes(&self) -> usize {
        match &self.task {
            Task::Write(Change::Settled { envelope, .. }) => CHANGE + envelope.len(),
            Task::Write(_) => CHANGE,
            Task::Flush | Task::CatchUp => 0,
        }
    }
}
