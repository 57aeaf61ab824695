//! The time-outs of all connections, kept by one clock. A timer for every head and every body would cost each request
//! more than the rest of its bookkeeping; here a request stores a number, and somebody looks at all numbers now and then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::options::Limits;

/// Nothing is waited for that has an end.
const NEVER: u64 = u64::MAX;

/// All connections, and the time.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Milliseconds since the server was made, as of the last look.
    now: Arc<AtomicU64>,
    head_ms: u64,
    body_ms: u64,
    watched: Mutex<HashMap<u64, Arc<Watch>>>,
    next: AtomicU64,
}

/// What one connection waits for.
#[derive(Debug)]
struct Watch {
    deadline: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

/// Dropped when a stream is over: from then on the next head is waited for.
#[derive(Debug)]
pub(crate) struct Streaming {
    watch: Arc<Watch>,
    now: Arc<AtomicU64>,
    head_ms: u64,
}

impl Drop for Streaming {
    fn drop(&mut self) {
        let deadline = self.now.load(Ordering::Relaxed).saturating_add(self.head_ms);
        self.watch.deadline.store(deadline, Ordering::Relaxed);
    }
}

/// One connection's place among the watched ones.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    all: &'a Deadlines,
    number: u64,
    watch: Arc<Watch>,
}

impl Deadlines {
    pub fn new(limits: &Limits) -> Self {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(NEVER / 2);
        Self {
            now: Arc::default(),
            head_ms: milliseconds(limits.header_timeout),
            body_ms: milliseconds(limits.body_timeout),
            watched: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// Begins to watch over a connection, which waits for the head of its first request.
    pub fn watch(&self) -> Watched<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let watch =
            Arc::new(Watch { deadline: AtomicU64::new(self.after(self.head_ms)), waker: Mutex::default() });
        locked(&self.watched).insert(number, Arc::clone(&watch));
        Watched { all: self, number, watch }
    }

    /// Looks at the time and at all connections, again and again.
    pub async fn keep(&self) {
        let started = Instant::now();
        let tick = Duration::from_millis((self.head_ms.min(self.body_ms) / 8).clamp(5, 500));
        let mut ticks = tokio::time::interval(tick);
        loop {
            ticks.tick().await;
            let now = u64::try_from(started.elapsed().as_millis()).unwrap_or(NEVER);
            self.now.store(now, Ordering::Relaxed);
            let watched = locked(&self.watched);
            watched
                .values()
                .filter(|watch| watch.deadline.load(Ordering::Relaxed) <= now)
                .for_each(|watch| watch.wake());
        }
    }

    /// Lets every connection look around.
    pub fn wake_all(&self) {
        locked(&self.watched).values().for_each(|watch| watch.wake());
    }

    fn after(&self, milliseconds: u64) -> u64 {
        self.now.load(Ordering::Relaxed).saturating_add(milliseconds)
    }
}

impl Watched<'_> {
    /// Whom to wake when it is late.
    pub fn register(&self, waker: &Waker) {
        let mut known = locked(&self.watch.waker);
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    /// From now on the next head is waited for, and that the answer before it is taken.
    pub fn awaits_head(&self) {
        self.watch.deadline.store(self.all.after(self.all.head_ms), Ordering::Relaxed);
    }

    /// From now on a stream goes on for as long as it likes.
    pub fn streams(&self) -> Streaming {
        let (watch, now) = (Arc::clone(&self.watch), Arc::clone(&self.all.now));
        Streaming { watch, now, head_ms: self.all.head_ms }
    }

    /// From now on a body is waited for.
    pub fn awaits_body(&self) {
        self.watch.deadline.store(self.all.after(self.all.body_ms), Ordering::Relaxed);
    }

    /// From now on it is our turn.
    pub fn works(&self) {
        self.watch.deadline.store(NEVER, Ordering::Relaxed);
    }

    pub fn is_late(&self) -> bool {
        self.watch.deadline.load(Ordering::Relaxed) <= self.all.now.load(Ordering::Relaxed)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        locked(&self.all.watched).remove(&self.number);
    }
}

impl Watch {
    fn wake(&self) {
        if let Some(waker) = &*locked(&self.waker) {
            waker.wake_by_ref();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
