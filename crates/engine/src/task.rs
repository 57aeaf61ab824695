//! One call on its way through the engine. It waits here, with its realm, while the host works; no thread is held.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    failure::Failure,
    pool::Shared,
    program::Program,
    realm::Realm,
    side::{Answer, Ending, Parts, Side},
};

/// What wakes a call.
#[derive(Debug)]
pub(crate) enum Event {
    Answer { id: u32, answer: Answer },
    Timer(u32),
    Abort,
}

/// What the first turn needs and no later one.
pub(crate) struct Input {
    pub program: Arc<Program>,
    pub args: Value,
    pub context: Value,
    pub now: Option<i64>,
}

pub(crate) type Reply = oneshot::Sender<Result<Value, Failure>>;

pub(crate) struct Task {
    pub side: Arc<Side>,
    shared: Weak<Shared>,
    seat: Mutex<Seat>,
}

struct Seat {
    place: Place,
    events: Vec<Event>,
    input: Option<Input>,
    realm: Option<Realm>,
    reply: Option<Reply>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Queued,
    Running,
    Waiting,
    Done,
}

/// What a worker takes along for one turn.
pub(crate) enum Boarding {
    Start(Input),
    Resume(Realm, Vec<Event>),
    /// The call has been answered already.
    Nothing,
}

impl Task {
    pub fn new(parts: Parts, input: Input, reply: Reply, shared: Weak<Shared>) -> Arc<Self> {
        Arc::new_cyclic(|task| Self {
            side: Arc::new(Side::new(parts, task.clone())),
            shared,
            seat: Mutex::new(Seat {
                place: Place::Queued,
                events: Vec::new(),
                input: Some(input),
                realm: None,
                reply: Some(reply),
            }),
        })
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings an event; a call that waits is queued again.
    pub fn wake(task: &Arc<Self>, event: Event) {
        let mut seat = task.seat();
        if seat.place == Place::Done {
            return;
        }
        seat.events.push(event);
        if seat.place == Place::Waiting {
            seat.place = Place::Queued;
            drop(seat);
            if let Some(shared) = task.shared.upgrade() {
                shared.push(task.clone());
            }
        }
    }

    pub fn board(&self) -> Boarding {
        let mut seat = self.seat();
        if seat.place == Place::Done {
            return Boarding::Nothing;
        }
        seat.place = Place::Running;
        let events = std::mem::take(&mut seat.events);
        match (seat.input.take(), seat.realm.take()) {
            // Cancelled before it began: nothing of the handler has run, and nothing will.
            (Some(_), _) if !events.is_empty() => Boarding::Nothing,
            (Some(input), _) => Boarding::Start(input),
            (None, Some(realm)) => Boarding::Resume(realm, events),
            (None, None) => Boarding::Nothing,
        }
    }

    /// Leaves the realm here until an event comes; gives both back when one has come already.
    pub fn park(&self, realm: Realm) -> Option<(Realm, Vec<Event>)> {
        let mut seat = self.seat();
        if seat.place == Place::Done {
            drop(seat);
            drop(realm);
            return None;
        }
        if seat.events.is_empty() {
            seat.place = Place::Waiting;
            seat.realm = Some(realm);
            return None;
        }
        let events = std::mem::take(&mut seat.events);
        Some((realm, events))
    }

    /// Answers the caller, once; the realm stays for the abort listeners.
    pub fn answer(&self, result: Result<Value, Failure>) {
        let reply = self.seat().reply.take();
        if let Some(reply) = reply {
            // The caller may have gone; then nobody misses the answer.
            let _ = reply.send(result);
        }
    }

    /// No turn follows. The realm, if one is parked here, goes with the last reference.
    pub fn finish(&self, result: Result<Value, Failure>) {
        let ending = match &result {
            Ok(_) | Err(Failure::Thrown { .. }) => Ending::Own,
            Err(_) => Ending::Stopped,
        };
        self.answer(result);
        let (realm, input) = {
            let mut seat = self.seat();
            seat.place = Place::Done;
            seat.events.clear();
            (seat.realm.take(), seat.input.take())
        };
        self.side.stop_errands(ending);
        drop((realm, input));
    }
}
