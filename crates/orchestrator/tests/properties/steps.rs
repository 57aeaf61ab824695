//! What may happen, as data that can be made up and made smaller.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, sample};
use serde_json::{Value, json};
use toolwright_orchestrator::ToolCall;

/// One thing that happens. Numbers that pick from what there is are taken modulo its size.
#[derive(Debug, Clone)]
pub enum Step {
    Call(usize, Ask),
    /// Several calls at once, as a model sends them.
    Message(usize, Vec<Ask>),
    /// Somebody who waits goes away.
    GoAway(usize),
    /// The handlers that wait may go on, this many.
    Open(usize),
    Turn(usize),
    Answer(Reply),
    /// Milliseconds pass.
    Pass(i64),
    Sweep,
    /// Whatever can go on does, a little.
    Let(usize),
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ask {
    pub id: usize,
    pub tool: Tool,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Writes; must not run twice.
    Note,
    /// Writes; may run again if nobody knows what became of it.
    Redo,
    /// A retrieval.
    Find,
    /// Needs a yes, and must not run twice.
    Pay,
}

/// What the handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Plain,
    Other,
    Waits,
    Fails,
}

/// What somebody says to a question.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Which of the tokens that were ever given out.
    pub token: usize,
    pub says: Says,
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Yes,
    /// Yes, but to other arguments.
    YesBut,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Honestly,
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

impl Ask {
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

fn ask() -> impl Strategy<Value = Ask> {
    let tools = [Tool::Note, Tool::Redo, Tool::Find, Tool::Find, Tool::Pay, Tool::Pay];
    let kinds = [Kind::Plain, Kind::Plain, Kind::Plain, Kind::Waits, Kind::Waits, Kind::Other, Kind::Fails];
    let parts = (0..IDS, sample::select(tools.to_vec()), sample::select(kinds.to_vec()));
    parts.prop_map(|(id, tool, kind)| Ask { id, tool, kind })
}

fn reply() -> impl Strategy<Value = Reply> {
    let says = sample::select(vec![Says::Yes, Says::Yes, Says::YesBut, Says::No]);
    let how =
        sample::select(vec![How::Honestly, How::Honestly, How::WithAnotherSecret, How::FromAnotherSession]);
    (any::<usize>(), says, how).prop_map(|(token, says, how)| Reply { token, says, how })
}

pub fn step() -> impl Strategy<Value = Step> {
    let session = 0..SESSIONS;
    prop_oneof![
        8 => (session.clone(), ask()).prop_map(|(session, ask)| Step::Call(session, ask)),
        2 => (session.clone(), collection::vec(ask(), 1..5)).prop_map(|(session, asks)| Step::Message(session, asks)),
        3 => any::<usize>().prop_map(Step::GoAway),
        2 => (1_usize..3).prop_map(Step::Open),
        1 => session.prop_map(Step::Turn),
        4 => reply().prop_map(Step::Answer),
        1 => (1_i64..700).prop_map(Step::Pass),
        1 => Just(Step::Sweep),
        3 => (1_usize..8).prop_map(Step::Let),
    ]
}
