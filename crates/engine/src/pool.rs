//! The engine's threads and what they share: the queue of calls that can go on, and realms made ahead.
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    call::Function,
    engine::Options,
    failure::Failure,
    luck::{Luck, look},
    program::Compiled,
    realm::Realm,
    task::Task,
    watcher::{Pulse, watch},
    worker::{Post, work},
};

pub(crate) struct Shared {
    pub options: Options,
    pub functions: Arc<[Function]>,
    queues: Mutex<Queues>,
    work: Condvar,
    /// How many calls are in the queue, for those who look without locking.
    queued: AtomicUsize,
    /// Workers that will ask for work in a moment without being woken.
    coming: AtomicUsize,
    idling: Luck,
    pub waiting: Luck,
    /// How many callers may look for their answers instead of sleeping: each takes a core.
    pub lookers: usize,
    /// Calls between entering `run` and leaving it.
    calls: AtomicUsize,
    pub pulse: Pulse,
}

#[derive(Default)]
struct Queues {
    ready: VecDeque<Arc<Task>>,
    spare: Vec<Realm>,
    making: usize,
    posts: Vec<Arc<Post>>,
    sleeping: usize,
    /// Workers that take new work; those held up by one long turn do not count.
    active: usize,
    stopping: bool,
}

pub(crate) enum Work {
    Turn(Arc<Task>),
    MakeRealm,
    Leave,
}

impl Shared {
    pub fn start(options: Options) -> Arc<Self> {
        let shared = Arc::new(Self {
            functions: options.functions.as_slice().into(),
            options,
            queues: Mutex::default(),
            work: Condvar::new(),
            queued: AtomicUsize::new(0),
            coming: AtomicUsize::new(0),
            idling: Luck::default(),
            waiting: Luck::default(),
            lookers: thread::available_parallelism().map_or(1, usize::from) - 1,
            calls: AtomicUsize::new(0),
            pulse: Pulse::default(),
        });
        Self::fill(&shared);
        let watched = shared.clone();
        let watcher = thread::Builder::new().name("js-watcher".to_owned()).spawn(move || watch(&watched));
        if let Ok(watcher) = watcher {
            shared.pulse.set_thread(watcher.thread().clone());
        }
        shared
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts workers until as many as wanted are free to work, within the bound on all threads.
    pub fn fill(shared: &Arc<Self>) {
        let mut queues = shared.queues();
        while queues.active < shared.options.threads
            && queues.posts.len() < shared.options.max_threads
            && !queues.stopping
        {
            let post = Arc::new(Post::default());
            let (mine, its) = (shared.clone(), post.clone());
            let started = thread::Builder::new()
                .name("js-worker".to_owned())
                .stack_size(shared.options.thread_stack_bytes)
                .spawn(move || work(&mine, &its));
            if started.is_err() {
                return;
            }
            queues.active += 1;
            queues.posts.push(post);
        }
    }

    /// One more call, unless there are too many.
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
        // Waking takes the caller's time, so nobody is woken for what a worker on its way will find.
        let wake = queues.sleeping > 0 && queues.ready.len() > self.coming.load(Ordering::Acquire);
        drop(queues);
        if wake {
            self.work.notify_one();
        }
    }

    /// Said by a worker before it answers a caller, who may have the next call ready before the worker has.
    pub fn announce(&self, post: &Post) {
        if post.set_coming(true) {
            self.coming.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// What a worker does next; waits until there is something.
    pub fn next(&self, post: &Post) -> Work {
        let mut queues = self.queues();
        let mut looked = false;
        loop {
            // Under the lock: whoever has counted on this worker has queued its call already.
            if post.set_coming(false) {
                self.coming.fetch_sub(1, Ordering::AcqRel);
            }
            if queues.stopping || post.is_abandoned() {
                return Work::Leave;
            }
            if let Some(task) = queues.ready.pop_front() {
                self.queued.store(queues.ready.len(), Ordering::Release);
                return Work::Turn(task);
            }
            // Those in use come back soon, mostly: only what is missing for long is made up for.
            if queues.spare.len() + queues.making < self.options.spare_realms.div_ceil(2) {
                queues.making += 1;
                return Work::MakeRealm;
            }
            if !looked && self.may_idle() {
                looked = true;
                self.announce(post);
                drop(queues);
                let found =
                    look(self.options.look, || (self.queued.load(Ordering::Acquire) > 0).then_some(()));
                self.idling.learn(found.is_some());
                queues = self.queues();
                continue;
            }
            queues.sleeping += 1;
            queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
            queues.sleeping -= 1;
        }
    }

    /// Some idle workers look for work, a caller may look for its answer, and together they leave cores to others.
    fn may_idle(&self) -> bool {
        let room = self.coming.load(Ordering::Acquire) < self.lookers.div_ceil(2);
        room && !self.options.look.is_zero() && self.idling.try_it()
    }

    /// The one that suits best, and of those the one used last.
    pub fn take_realm(&self, compiled: &Arc<Compiled>) -> Option<Realm> {
        let mut queues = self.queues();
        let best = (0..queues.spare.len()).max_by_key(|at| queues.spare[*at].suits(compiled))?;
        Some(queues.spare.remove(best))
    }

    pub fn keep_made(&self, realm: Option<Realm>) {
        let mut queues = self.queues();
        queues.making = queues.making.saturating_sub(1);
        queues.spare.extend(realm);
    }

    /// After its call. The realm of a worker that had been given up on is not used again.
    pub fn give_back(&self, realm: Realm, post: &Post) {
        if post.is_abandoned() {
            return;
        }
        let Some(realm) = realm.recycled() else { return };
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

    pub fn posts(&self) -> Vec<Arc<Post>> {
        self.queues().posts.clone()
    }

    pub fn is_stopping(&self) -> bool {
        self.queues().stopping
    }

    /// A worker held up by a long turn leaves its place to another.
    pub fn release(shared: &Arc<Self>, post: &Post) {
        if post.release() {
            shared.queues().active -= 1;
            Self::fill(shared);
        }
    }

    /// Back from a long turn: takes its place again, or leaves when that has been filled.
    pub fn rejoin(&self, post: &Post) -> bool {
        let mut queues = self.queues();
        if post.is_abandoned() || queues.active >= self.options.threads {
            return false;
        }
        queues.active += 1;
        post.reclaim();
        true
    }

    pub fn sign_off(&self, post: &Arc<Post>) {
        let mut queues = self.queues();
        if !post.is_released() {
            queues.active -= 1;
        }
        queues.posts.retain(|other| !Arc::ptr_eq(other, post));
        if post.set_coming(false) {
            self.coming.fetch_sub(1, Ordering::AcqRel);
        }
        drop(queues);
        // It may have been counted on.
        self.work.notify_one();
    }

    pub fn stop(&self) {
        let (ready, spare) = {
            let mut queues = self.queues();
            queues.stopping = true;
            (std::mem::take(&mut queues.ready), std::mem::take(&mut queues.spare))
        };
        self.work.notify_all();
        self.pulse.wake();
        for task in ready {
            task.finish(Err(Failure::EngineLost));
        }
        drop(spare);
    }
}
