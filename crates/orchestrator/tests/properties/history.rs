//! What happened, in the order in which it happened.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use toolwright_contract::Envelope;

use crate::steps::{Ask, Says};

/// Somebody who waits for something.
pub type Task = usize;

#[derive(Debug, Clone)]
pub enum Event {
    /// Of a message, there is one for each of its calls.
    Sent {
        task: Task,
        session: usize,
        ask: Ask,
    },
    /// A handler began.
    Ran {
        session: usize,
        id: String,
        tool: String,
        args: Value,
        run: u64,
    },
    /// The answers to a task, in order.
    Answered {
        task: Task,
        envelopes: Vec<Envelope>,
    },
    /// Whoever waited went away.
    Gone {
        task: Task,
    },
    Turn {
        session: usize,
    },
    Replied {
        task: Task,
        reply: Replied,
    },
    /// A reply was heeded, and this came of it.
    Heeded {
        task: Task,
        envelope: Envelope,
    },
    Refused {
        task: Task,
    },
}

/// A reply as it was given.
#[derive(Debug, Clone)]
pub struct Replied {
    /// The question's id.
    pub question: String,
    pub says: Says,
    pub token: String,
    /// It has the secret, and comes from the right session.
    pub is_honest: bool,
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
