//! The events of a run, in order.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use toolwright_contract::Envelope;

use crate::steps::{TestCall, UserAnswer};

/// A caller or an approver that waits for a result.
pub type Task = usize;

#[derive(Debug, Clone)]
pub enum Event {
    /// One event for each call of a message.
    Sent {
        task: Task,
        session: usize,
        test_call: TestCall,
    },
    /// A handler started.
    Ran {
        session: usize,
        id: String,
        tool: String,
        args: Value,
        run: u64,
    },
    /// The results of a task, in the order of its calls.
    Answered {
        task: Task,
        envelopes: Vec<Arc<Envelope>>,
    },
    /// The caller disconnected.
    Disconnected {
        task: Task,
    },
    Turn {
        session: usize,
    },
    Replied {
        task: Task,
        reply: Replied,
    },
    /// An answer was accepted, with this result.
    Accepted {
        task: Task,
        envelope: Arc<Envelope>,
    },
    Refused {
        task: Task,
    },
}

/// An answer to a confirmation request.
#[derive(Debug, Clone)]
pub struct Replied {
    /// The id of the confirmation request.
    pub confirmation: String,
    pub answer: UserAnswer,
    pub token: String,
    /// It has the right secret and session.
    pub is_genuine: bool,
    pub now: i64,
}

#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Event>>);

impl History {
    pub fn add(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
