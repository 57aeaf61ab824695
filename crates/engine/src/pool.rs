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
    engine::Options,
    failure::Failure,
    realm::Realm,
    task::Task,
    watcher::{Pulse, watch},
    worker::{Post, work},
};

pub(crate) struct Shared {
    pub options: Options,
    queues: Mutex<Queues>,
    work: Condvar,
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
            options,
            queues: Mutex::default(),
            work: Condvar::new(),
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

    pub fn push(&self, task: Arc<Task>) {
        let mut queues = self.queues();
        if queues.stopping {
            drop(queues);
            return task.finish(Err(Failure::EngineLost));
        }
        queues.ready.push_back(task);
        drop(queues);
        self.work.notify_one();
    }

    /// What a worker does next; waits until there is something.
    pub fn next(&self, post: &Post) -> Work {
        let mut queues = self.queues();
        loop {
            if queues.stopping || post.is_abandoned() {
                return Work::Leave;
            }
            if let Some(task) = queues.ready.pop_front() {
                return Work::Turn(task);
            }
            if queues.spare.len() + queues.making < self.options.spare_realms {
                queues.making += 1;
                return Work::MakeRealm;
            }
            queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn take_realm(&self) -> Option<Realm> {
        self.queues().spare.pop()
    }

    pub fn keep_realm(&self, realm: Option<Realm>) {
        let mut queues = self.queues();
        queues.making = queues.making.saturating_sub(1);
        queues.spare.extend(realm);
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
