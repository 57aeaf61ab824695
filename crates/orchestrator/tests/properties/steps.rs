//! The steps of a run, as data that proptest generates and shrinks.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, sample};
use serde_json::{Value, json};
use toolwright_orchestrator::ToolCall;

/// One step. An index is taken modulo the number of candidates.
#[derive(Debug, Clone)]
pub enum Step {
    Call(usize, TestCall),
    /// The calls of one model message.
    Message(usize, Vec<TestCall>),
    /// A waiting caller disconnects.
    Disconnect(usize),
    /// Lets this many waiting handlers continue.
    Open(usize),
    Turn(usize),
    Answer(Reply),
    /// Advances the clock by milliseconds.
    Pass(i64),
    Sweep,
    /// Lets other tasks run for a while.
    Wait(usize),
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TestCall {
    pub id: usize,
    pub tool: Tool,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Writes; must not run twice.
    Note,
    /// Writes; idempotent.
    Redo,
    /// A retrieval.
    Find,
    /// Needs approval; must not run twice.
    Pay,
}

/// The handler's behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Plain,
    Other,
    Waits,
    Fails,
}

/// An answer to a confirmation request.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The index of a token among all that were issued.
    pub token: usize,
    pub answer: UserAnswer,
    pub how: Sender,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAnswer {
    Approve,
    /// Approval of edited arguments.
    ApproveEdited,
    Reject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Genuine,
    WithAnotherSecret,
    FromAnotherSession,
}

pub const SESSIONS: usize = 2;
const IDS: usize = 4;

impl Tool {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Redo => "redo",
            Self::Find => "find",
            Self::Pay => "pay",
        }
    }
}

impl TestCall {
    pub fn id(&self) -> String {
        format!("c{}", self.id)
    }

    pub fn args(&self) -> Value {
        match self.kind {
            Kind::Plain => json!({}),
            Kind::Other => json!({ "other": true }),
            Kind::Waits => json!({ "waits": true }),
            Kind::Fails => json!({ "fails": true }),
        }
    }

    pub fn call(&self) -> ToolCall {
        ToolCall { id: Some(self.id()), tool: self.tool.name().to_owned(), args: self.args() }
    }
}

fn test_call() -> impl Strategy<Value = TestCall> {
    let tools = [Tool::Note, Tool::Redo, Tool::Find, Tool::Find, Tool::Pay, Tool::Pay];
    let kinds = [Kind::Plain, Kind::Plain, Kind::Plain, Kind::Waits, Kind::Waits, Kind::Other, Kind::Fails];
    let parts = (0..IDS, sample::select(tools.to_vec()), sample::select(kinds.to_vec()));
    parts.prop_map(|(id, tool, kind)| TestCall { id, tool, kind })
}

fn reply() -> impl Strategy<Value = Reply> {
    let answer = sample::select(vec![
        UserAnswer::Approve,
        UserAnswer::Approve,
        UserAnswer::ApproveEdited,
        UserAnswer::Reject,
    ]);
    let how = sample::select(vec![
        Sender::Genuine,
        Sender::Genuine,
        Sender::WithAnotherSecret,
        Sender::FromAnotherSession,
    ]);
    (any::<usize>(), answer, how).prop_map(|(token, answer, how)| Reply { token, answer, how })
}

pub fn step() -> impl Strategy<Value = Step> {
    let session = 0..SESSIONS;
    prop_oneof![
        8 => (session.clone(), test_call()).prop_map(|(session, test_call)| Step::Call(session, test_call)),
        2 => (session.clone(), collection::vec(test_call(), 1..5)).prop_map(|(session, test_calls)| Step::Message(session, test_calls)),
        3 => any::<usize>().prop_map(Step::Disconnect),
        2 => (1_usize..3).prop_map(Step::Open),
        1 => session.prop_map(Step::Turn),
        4 => reply().prop_map(Step::Answer),
        1 => (1_i64..700).prop_map(Step::Pass),
        1 => Just(Step::Sweep),
        3 => (1_usize..8).prop_map(Step::Wait),
    ]
}
