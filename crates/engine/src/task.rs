//! The state of one call in the engine. While it waits for the host, its realm is parked here and no thread is held.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    failure::Failure,
    host::{CallEnd, CallHost, CallHostParts, HostResult},
    pool::Shared,
    program::Program,
    realm::Realm,
};

/// An event that resumes a call.
#[derive(Debug)]
pub(crate) enum Event {
    HostResult { id: u32, result: HostResult },
    Timer(u32),
    Abort,
}

/// The input of the first turn.
pub(crate) struct Input {
    pub program: Arc<Program>,
    pub args: Value,
    pub context: Value,
    pub now: Option<i64>,
}

pub(crate) type Reply = oneshot::Sender<Result<Value, Failure>>;

pub(crate) struct Task {
    pub call_host: Arc<CallHost>,
    shared: Weak<Shared>,
    state: Mutex<TaskState>,
}

struct TaskState {
    phase: Phase,
    events: Vec<Event>,
    input: Option<Input>,
    realm: Option<Realm>,
    reply: Option<Reply>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Queued,
    Running,
    Waiting,
    Done,
}

/// The input of one turn.
pub(crate) enum TurnInput {
    Start(Input),
    Resume(Realm, Vec<Event>),
    /// The call has already ended.
    Finished,
}

impl Task {
    pub fn new(parts: CallHostParts, input: Input, reply: Reply, shared: Weak<Shared>) -> Arc<Self> {
        Arc::new_cyclic(|task| Self {
            call_host: Arc::new(CallHost::new(parts, task.clone())),
            shared,
            state: Mutex::new(TaskState {
                phase: Phase::Queued,
                events: Vec::new(),
                input: Some(input),
                realm: None,
                reply: Some(reply),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event, and queues the call if it waits.
    pub fn wake(task: &Arc<Self>, event: Event) {
        let mut state = task.state();
        if state.phase == Phase::Done {
            return;
        }
        state.events.push(event);
        if state.phase == Phase::Waiting {
            state.phase = Phase::Queued;
            drop(state);
            if let Some(shared) = task.shared.upgrade() {
                shared.push(task.clone());
            }
        }
    }

    pub fn begin_turn(&self) -> TurnInput {
        let mut state = self.state();
        if state.phase == Phase::Done {
            return TurnInput::Finished;
        }
        state.phase = Phase::Running;
        let events = std::mem::take(&mut state.events);
        match (state.input.take(), state.realm.take()) {
            // Cancelled before its first turn.
            (Some(_), _) if !events.is_empty() => TurnInput::Finished,
            (Some(input), _) => TurnInput::Start(input),
            (None, Some(realm)) => TurnInput::Resume(realm, events),
            (None, None) => TurnInput::Finished,
        }
    }

    /// Parks the realm until an event arrives. Returns both if one has already arrived.
    pub fn park(&self, realm: Realm) -> Option<(Realm, Vec<Event>)> {
        let mut state = self.state();
        if state.phase == Phase::Done {
            drop(state);
            drop(realm);
            return None;
        }
        if state.events.is_empty() {
            state.phase = Phase::Waiting;
            state.realm = Some(realm);
            return None;
        }
        let events = std::mem::take(&mut state.events);
        Some((realm, events))
    }

    /// Sends the result to the caller, once. The realm remains for the abort listeners.
    pub fn send_result(&self, result: Result<Value, Failure>) {
        let reply = self.state().reply.take();
        if let Some(reply) = reply {
            // The caller may have been dropped.
            let _ = reply.send(result);
        }
    }

    /// Ends the call. A parked realm is dropped.
    pub fn finish(&self, result: Result<Value, Failure>) {
        let ending = match &result {
            Ok(_) | Err(Failure::Thrown { .. }) => CallEnd::Completed,
            Err(_) => CallEnd::Stopped,
        };
        self.send_result(result);
        let (realm, input) = {
            let mut state = self.state();
            state.phase = Phase::Done;
            state.events.clear();
            (state.realm.take(), state.input.take())
        };
        self.call_host.stop_jobs(ending);
        drop((realm, input));
    }
}
