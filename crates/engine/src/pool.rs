//! The worker pool: threads, the queue of runnable tasks, and spare realms.
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    call::HostFunction,
    engine::Options,
    failure::Failure,
    program::Compiled,
    realm::Realm,
    spin::{SpinHistory, spin_until},
    task::Task,
    watcher::{WatcherSignal, watch},
    worker::{WorkerSlot, work},
};

pub(crate) struct Shared {
    pub options: Options,
    pub functions: Arc<[HostFunction]>,
    queues: Mutex<Queues>,
    work: Condvar,
    /// The length of the queue, readable without the lock.
    queued: AtomicUsize,
    /// Workers that will take work soon without being woken.
    returning: AtomicUsize,
    worker_spins: SpinHistory,
    pub caller_spins: SpinHistory,
    /// How many callers may spin for their results: each occupies a core.
    pub max_spinners: usize,
    /// Calls that are in `run`.
    calls: AtomicUsize,
    pub watcher_signal: WatcherSignal,
}

#[derive(Default)]
struct Queues {
    ready: VecDeque<Arc<Task>>,
    spare: Vec<Realm>,
    making: usize,
    slots: Vec<Arc<WorkerSlot>>,
    sleeping: usize,
    /// Workers that take new work, without those in a long turn.
    active: usize,
    stopping: bool,
}

pub(crate) enum Work {
    Turn(Arc<Task>),
    MakeRealm,
    Exit,
}

impl Shared {
    pub fn start(options: Options) -> Arc<Self> {
        let shared = Arc::new(Self {
            functions: options.functions.as_slice().into(),
            options,
            queues: Mutex::default(),
            work: Condvar::new(),
            queued: AtomicUsize::new(0),
            returning: AtomicUsize::new(0),
            worker_spins: SpinHistory::default(),
            caller_spins: SpinHistory::default(),
            max_spinners: thread::available_parallelism().map_or(1, usize::from) - 1,
            calls: AtomicUsize::new(0),
            watcher_signal: WatcherSignal::default(),
        });
        Self::fill(&shared);
        let watched = shared.clone();
        let watcher = thread::Builder::new().name("js-watcher".to_owned()).spawn(move || watch(&watched));
        if let Ok(watcher) = watcher {
            shared.watcher_signal.set_thread(watcher.thread().clone());
        }
        shared
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts workers until enough are active, within the limit of all threads.
    pub fn fill(shared: &Arc<Self>) {
        let mut queues = shared.queues();
        while queues.active < shared.options.threads
            && queues.slots.len() < shared.options.max_threads
            && !queues.stopping
        {
            let slot = Arc::new(WorkerSlot::default());
            let (mine, its) = (shared.clone(), slot.clone());
            let started = thread::Builder::new()
                .name("js-worker".to_owned())
                .stack_size(shared.options.thread_stack_bytes)
                .spawn(move || work(&mine, &its));
            if started.is_err() {
                return;
            }
            queues.active += 1;
            queues.slots.push(slot);
        }
    }

    /// Counts one more call, unless the limit is reached.
    pub fn enter(&self) -> Result<(), Failure> {
        if self.calls.fetch_add(1, Ordering::AcqRel) >= self.options.max_calls {
            self.leave();
            return Err(Failure::Overloaded);
        }
        Ok(())
    }

    pub fn leave(&self) {
        self.calls.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn in_flight(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn push(&self, task: Arc<Task>) {
        let mut queues = self.queues();
        if queues.stopping {
            drop(queues);
            return task.finish(Err(Failure::EngineLost));
        }
        queues.ready.push_back(task);
        self.queued.store(queues.ready.len(), Ordering::Release);
        // Waking costs the caller time, so no worker is woken if one is about to take the task anyway.
        let wake = queues.sleeping > 0 && queues.ready.len() > self.returning.load(Ordering::Acquire);
        drop(queues);
        if wake {
            self.work.notify_one();
        }
    }

    /// Called by a worker before it sends a result: the caller's next call may arrive before the worker waits again.
    pub fn announce_return(&self, slot: &WorkerSlot) {
        if slot.set_returning(true) {
            self.returning.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Waits for the next work of a worker.
    pub fn next(&self, slot: &WorkerSlot) -> Work {
        let mut queues = self.queues();
        let mut has_spun = false;
        loop {
            // Under the lock: callers that relied on this worker have already queued their task.
            if slot.set_returning(false) {
                self.returning.fetch_sub(1, Ordering::AcqRel);
            }
            if queues.stopping || slot.is_abandoned() {
                return Work::Exit;
            }
            if let Some(task) = queues.ready.pop_front() {
                self.queued.store(queues.ready.len(), Ordering::Release);
                return Work::Turn(task);
            }
            // Realms in use are usually returned soon, so only half of the limit is created in advance.
            if queues.spare.len() + queues.making < self.options.spare_realms.div_ceil(2) {
                queues.making += 1;
                return Work::MakeRealm;
            }
            if !has_spun && self.may_spin() {
                has_spun = true;
                self.announce_return(slot);
                drop(queues);
                let found =
                    spin_until(self.options.spin, || (self.queued.load(Ordering::Acquire) > 0).then_some(()));
                self.worker_spins.record(found.is_some());
                queues = self.queues();
                continue;
            }
            queues.sleeping += 1;
            queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
            queues.sleeping -= 1;
        }
    }

    /// Limits spinning workers, so that together with spinning callers they leave cores free.
    fn may_spin(&self) -> bool {
        let room = self.returning.load(Ordering::Acquire) < self.max_spinners.div_ceil(2);
        room && !self.options.spin.is_zero() && self.worker_spins.should_spin()
    }

    /// The spare realm that matches the program best, and of several the one used last.
    pub fn take_realm(&self, compiled: &Arc<Compiled>) -> Option<Realm> {
        let mut queues = self.queues();
        let best = (0..queues.spare.len()).max_by_key(|at| queues.spare[*at].match_score(compiled))?;
        Some(queues.spare.remove(best))
    }

    pub fn add_spare_realm(&self, realm: Option<Realm>) {
        let mut queues = self.queues();
        queues.making = queues.making.saturating_sub(1);
        queues.spare.extend(realm);
    }

    /// Returns a realm after its call. The realm of an abandoned worker is not used again.
    pub fn return_realm(&self, realm: Realm, slot: &WorkerSlot) {
        if slot.is_abandoned() {
            return;
        }
        let Some(realm) = realm.recycle() else { return };
        let mut queues = self.queues();
        let surplus = if !queues.stopping && queues.spare.len() < self.options.spare_realms {
            queues.spare.push(realm);
            None
        } else {
            Some(realm)
        };
        drop(queues);
        drop(surplus);
    }

    pub fn slots(&self) -> Vec<Arc<WorkerSlot>> {
        self.queues().slots.clone()
    }

    pub fn is_stopping(&self) -> bool {
        self.queues().stopping
    }

    /// Replaces a worker that is in a long turn by another.
    pub fn release(shared: &Arc<Self>, slot: &WorkerSlot) {
        if slot.release() {
            shared.queues().active -= 1;
            Self::fill(shared);
        }
    }

    /// After a long turn: becomes active again, or exits if it was replaced.
    pub fn rejoin(&self, slot: &WorkerSlot) -> bool {
        let mut queues = self.queues();
        if slot.is_abandoned() || queues.active >= self.options.threads {
            return false;
        }
        queues.active += 1;
        slot.reclaim();
        true
    }

    pub fn unregister(&self, slot: &Arc<WorkerSlot>) {
        let mut queues = self.queues();
        if !slot.is_released() {
            queues.active -= 1;
        }
        queues.slots.retain(|other| !Arc::ptr_eq(other, slot));
        if slot.set_returning(false) {
            self.returning.fetch_sub(1, Ordering::AcqRel);
        }
        drop(queues);
        // A caller may have relied on it.
        self.work.notify_one();
    }

    pub fn stop(&self) {
        let (ready, spare) = {
            let mut queues = self.queues();
            queues.stopping = true;
            (std::mem::take(&mut queues.ready), std::mem::take(&mut queues.spare))
        };
        self.work.notify_all();
        self.watcher_signal.wake();
        for task in ready {
            task.finish(Err(Failure::EngineLost));
        }
        drop(spare);
    }
}
