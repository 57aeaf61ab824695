//! A worker: takes calls that can go on, one turn each.
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
    memory::Valve,
    pool::{Shared, Work},
    realm::Realm,
    task::{Boarding, Event, Task},
    turn::{self, Progress},
};

/// What the watcher sees of a worker.
#[derive(Default)]
pub(crate) struct Post {
    pub thread: AtomicI32,
    present: Mutex<Option<Present>>,
    /// Its place in the pool has been given to another.
    released: AtomicBool,
    /// Its caller has been answered in its stead.
    abandoned: AtomicBool,
    /// It is about to ask for work.
    coming: AtomicBool,
}

/// The turn that a worker is in.
#[derive(Clone)]
pub(crate) struct Present {
    pub task: Arc<Task>,
    /// Of the realm that it is in, once it is in one.
    pub valve: Option<Valve>,
    pub since: Instant,
}

impl Post {
    pub fn present(&self) -> Option<Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_present(&self, present: Option<Present>) {
        let before =
            std::mem::replace(&mut *self.present.lock().unwrap_or_else(PoisonError::into_inner), present);
        drop(before);
    }

    /// True for the first to release it.
    pub fn release(&self) -> bool {
        !self.released.swap(true, Ordering::AcqRel)
    }

    pub fn reclaim(&self) {
        self.released.store(false, Ordering::Release);
    }

    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    /// True if it was otherwise.
    pub fn set_coming(&self, coming: bool) -> bool {
        self.coming.swap(coming, Ordering::AcqRel) != coming
    }

    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
}

pub(crate) fn work(shared: &Arc<Shared>, post: &Arc<Post>) {
    post.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    loop {
        match shared.next(post) {
            Work::Leave => break,
            Work::MakeRealm => shared.keep_made(Realm::new(&shared.functions).ok()),
            Work::Turn(task) => {
                take_turn(shared, post, &task);
                if post.is_released() && !shared.rejoin(post) {
                    break;
                }
            }
        }
    }
    shared.sign_off(post);
    // With the bound on threads reached, this may be what a replacement has waited for.
    Shared::fill(shared);
}

fn take_turn(shared: &Arc<Shared>, post: &Post, task: &Arc<Task>) {
    shared.pulse.beat();
    let taken = catch_unwind(AssertUnwindSafe(|| turns(shared, post, task)));
    post.set_present(None);
    if taken.is_err() {
        task.finish(Err(Failure::EngineLost));
    }
}

/// Turns of one call until it waits or ends; the realm is put back after the caller has got the answer.
fn turns(shared: &Shared, post: &Post, task: &Arc<Task>) {
    let show = |realm: Option<&Realm>| {
        let (task, valve) = (task.clone(), realm.map(|realm| realm.meter().valve()));
        post.set_present(Some(Present { task, valve, since: Instant::now() }));
    };
    let (mut realm, mut progress) = match task.board() {
        Boarding::Nothing => return task.finish(Err(Failure::Cancelled)),
        Boarding::Start(input) => {
            // Compiling a large program takes long, but happens once.
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
            let progress = measured(task, || turn::start(&mut realm, &task.side, &compiled, &input));
            (realm, progress)
        }
        Boarding::Resume(realm, events) => {
            show(Some(&realm));
            let progress = resume(task, &realm, events);
            (realm, progress)
        }
    };
    loop {
        match progress {
            Progress::Settled(result) => {
                shared.announce(post);
                task.finish(result);
                return shared.give_back(realm, post);
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

/// After an abort only the listeners run; the caller has been answered, so whatever they lead to is the end.
fn resume(task: &Arc<Task>, realm: &Realm, events: Vec<Event>) -> Progress {
    let aborted = events.iter().any(|event| matches!(event, Event::Abort));
    if !aborted {
        return measured(task, || turn::resume(realm, &task.side, events));
    }
    task.side.control.begin_epilogue();
    let stop = task.side.control.stopped().map_or(Failure::Cancelled, |stop| stop.failure());
    task.answer(Err(stop.clone()));
    measured(task, || turn::resume(realm, &task.side, events));
    Progress::Settled(Err(stop))
}

fn measured(task: &Task, turn: impl FnOnce() -> Progress) -> Progress {
    task.side.control.begin_turn();
    let progress = turn();
    // Reading the clock is a system call, and nobody asks after the last turn.
    if matches!(progress, Progress::Waiting) {
        task.side.control.end_turn();
    }
    progress
}
