//! A worker thread: runs the turns of queued calls.
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Instant,
};

use crate::{
    failure::Failure,
    memory::MemoryShutoff,
    pool::{Shared, Work},
    realm::Realm,
    task::{Event, Task, TurnInput},
    turn::{self, Progress},
};

/// The state of a worker that the pool and the watcher use.
#[derive(Default)]
pub(crate) struct WorkerSlot {
    pub thread: AtomicI32,
    current_turn: Mutex<Option<CurrentTurn>>,
    /// It was replaced because of a long turn.
    released: AtomicBool,
    /// The watcher has ended its call and given up on it.
    abandoned: AtomicBool,
    /// It will take work soon.
    returning: AtomicBool,
}

/// The turn that a worker runs.
#[derive(Clone)]
pub(crate) struct CurrentTurn {
    pub task: Arc<Task>,
    /// Stops the allocations of its realm, once it has one.
    pub shutoff: Option<MemoryShutoff>,
    pub since: Instant,
}

impl WorkerSlot {
    pub fn current_turn(&self) -> Option<CurrentTurn> {
        self.current_turn.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_current_turn(&self, turn: Option<CurrentTurn>) {
        let before =
            std::mem::replace(&mut *self.current_turn.lock().unwrap_or_else(PoisonError::into_inner), turn);
        drop(before);
    }

    /// True if it was not released before.
    pub fn release(&self) -> bool {
        !self.released.swap(true, Ordering::AcqRel)
    }

    pub fn reclaim(&self) {
        self.released.store(false, Ordering::Release);
    }

    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    /// True if the value has changed.
    pub fn set_returning(&self, returning: bool) -> bool {
        self.returning.swap(returning, Ordering::AcqRel) != returning
    }

    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
}

pub(crate) fn work(shared: &Arc<Shared>, slot: &Arc<WorkerSlot>) {
    slot.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    loop {
        match shared.next(slot) {
            Work::Exit => break,
            Work::MakeRealm => shared.add_spare_realm(Realm::new(&shared.functions).ok()),
            Work::Turn(task) => {
                take_turn(shared, slot, &task);
                if slot.is_released() && !shared.rejoin(slot) {
                    break;
                }
            }
        }
    }
    shared.unregister(slot);
    // At the limit of threads, a replacement may have to wait for this one to exit.
    Shared::fill(shared);
}

fn take_turn(shared: &Arc<Shared>, slot: &WorkerSlot, task: &Arc<Task>) {
    shared.watcher_signal.turn_started();
    let taken = catch_unwind(AssertUnwindSafe(|| turns(shared, slot, task)));
    slot.set_current_turn(None);
    if taken.is_err() {
        task.finish(Err(Failure::EngineLost));
    }
}

/// Runs turns of one call until it waits or ends. The realm is restored after the caller has its result.
fn turns(shared: &Shared, slot: &WorkerSlot, task: &Arc<Task>) {
    let show = |realm: Option<&Realm>| {
        let (task, shutoff) = (task.clone(), realm.map(|realm| realm.meter().shutoff()));
        slot.set_current_turn(Some(CurrentTurn { task, shutoff, since: Instant::now() }));
    };
    let (mut realm, mut progress) = match task.begin_turn() {
        TurnInput::Finished => return task.finish(Err(Failure::Cancelled)),
        TurnInput::Start(input) => {
            // Compiling a large program can take long.
            if !input.program.is_compiled() {
                show(None);
            }
            let compiled = match input.program.compiled() {
                Ok(compiled) => compiled,
                Err(why) => return task.finish(Err(Failure::Load(why))),
            };
            let spare = shared.take_realm(&compiled);
            let Some(mut realm) = spare.or_else(|| Realm::new(&shared.functions).ok()) else {
                return task.finish(Err(Failure::EngineLost));
            };
            show(Some(&realm));
            let progress = measured(task, || turn::start(&mut realm, &task.call_host, &compiled, &input));
            (realm, progress)
        }
        TurnInput::Resume(realm, events) => {
            show(Some(&realm));
            let progress = resume(task, &realm, events);
            (realm, progress)
        }
    };
    loop {
        match progress {
            Progress::Settled(result) => {
                shared.announce_return(slot);
                task.finish(result);
                return shared.return_realm(realm, slot);
            }
            Progress::Waiting => match task.park(realm) {
                None => return,
                Some((back, events)) => {
                    progress = resume(task, &back, events);
                    realm = back;
                }
            },
        }
    }
}

/// After an abort the caller gets its result, the listeners run, and the call ends.
fn resume(task: &Arc<Task>, realm: &Realm, events: Vec<Event>) -> Progress {
    let aborted = events.iter().any(|event| matches!(event, Event::Abort));
    if !aborted {
        return measured(task, || turn::resume(realm, &task.call_host, events));
    }
    task.call_host.control.begin_abort_listeners();
    let stop = task.call_host.control.stopped().map_or(Failure::Cancelled, |stop| stop.failure());
    task.send_result(Err(stop.clone()));
    measured(task, || turn::resume(realm, &task.call_host, events));
    Progress::Settled(Err(stop))
}

fn measured(task: &Task, turn: impl FnOnce() -> Progress) -> Progress {
    task.call_host.control.begin_turn();
    let progress = turn();
    // Reading the clock is a system call and not needed after the last turn.
    if matches!(progress, Progress::Waiting) {
        task.call_host.control.end_turn();
    }
    progress
}
