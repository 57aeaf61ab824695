//! The part of the model that knows the questions to the user: who may answer, and what an answer allows.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use toolwright_contract::Envelope;

use crate::history::{Replied, Task};
use crate::model::Name;
use crate::steps::{Ask, Says};

#[derive(Debug, Default)]
pub struct Questions {
    all: HashMap<String, Question>,
    /// How often each call was sent.
    sent: HashMap<(Name, Ask), usize>,
    /// Replies that nobody has said anything to.
    waiting: HashMap<Task, Replied>,
}

#[derive(Debug)]
struct Question {
    name: Name,
    ask: Ask,
    expires_at: i64,
    tokens: BTreeSet<String>,
    /// Honest replies in time; the first of them may count, whether or not its author stayed.
    replies: Vec<(Task, Says)>,
    /// The one that counted.
    decided: Option<(Task, Says)>,
    runs: usize,
}

/// A reply that counted.
#[derive(Debug)]
pub struct Heeded {
    pub name: Name,
    pub ask: Ask,
    pub is_yes: bool,
}

impl Questions {
    pub fn sent(&mut self, name: Name, ask: Ask) {
        *self.sent.entry((name, ask)).or_default() += 1;
    }

    pub fn asked(&mut self, id: &str, token: String, name: &Name, ask: Ask, envelope: &Envelope) {
        let failure = envelope.outcome.as_ref().unwrap_err();
        let request = &failure.details.as_ref().unwrap()["confirmation_request"];
        assert_eq!(
            (&request["tool"], &request["args"]),
            (&ask.tool.name().into(), &ask.args()),
            "another call"
        );
        let question = self.all.entry(id.to_owned()).or_insert_with(|| Question {
            name: name.clone(),
            ask,
            expires_at: request["expires_at"].as_i64().unwrap(),
            tokens: BTreeSet::new(),
            replies: Vec::new(),
            decided: None,
            runs: 0,
        });
        assert_eq!((&question.name, question.ask), (name, ask), "one question about two calls");
        question.tokens.insert(token);
    }

    pub fn replied(&mut self, task: Task, reply: &Replied) {
        self.waiting.insert(task, reply.clone());
        let question = self.all.get_mut(&reply.question).unwrap();
        let has_token = question.tokens.contains(&reply.token);
        if reply.is_honest && has_token && reply.now < question.expires_at {
            question.replies.push((task, reply.says));
        }
    }

    /// A refusal has a reason.
    pub fn refused(&mut self, task: Task) {
        let reply = self.waiting.remove(&task).unwrap();
        let question = &self.all[&reply.question];
        let is_late = reply.now >= question.expires_at;
        let others = question.replies.iter().any(|(other, _)| *other != task);
        // Whoever asks again has a new token, also if they did not stay to hear of it.
        let may_be_old = self.sent[&(question.name.clone(), question.ask)] > 1;
        assert!(
            !reply.is_honest || is_late || others || may_be_old,
            "refused without a reason: {reply:?} {question:?}"
        );
    }

    pub fn gone(&mut self, task: Task) {
        self.waiting.remove(&task);
    }

    pub fn heeded(&mut self, task: Task) -> Heeded {
        let reply = self.waiting.remove(&task).unwrap();
        let question = self.all.get_mut(&reply.question).unwrap();
        assert!(question.replies.contains(&(task, reply.says)), "it must not count: {reply:?} {question:?}");
        let decided = question.decided.replace((task, reply.says));
        assert_eq!(decided, None, "two replies counted: {question:?}");
        let is_yes = reply.says != Says::No;
        assert!(is_yes || question.runs == 0, "it ran, and then it was declined: {question:?}");
        Heeded { name: question.name.clone(), ask: question.ask, is_yes }
    }

    /// Whether somebody has said no to this call, whether or not they stayed.
    pub fn may_be_declined(&self, name: &Name, ask: Ask) -> bool {
        let is_about = |question: &&Question| question.name == *name && question.ask == ask;
        let said_no = |question: &Question| question.replies.iter().any(|(_, says)| *says == Says::No);
        self.all.values().filter(is_about).any(said_no)
    }

    /// A call that needs a yes began: there was one, to these arguments, and it had not been used.
    pub fn used(&mut self, name: &Name, args: &Value) -> Ask {
        let fits = |question: &&mut Question| {
            let said = |says| question.replies.iter().any(|(_, said)| *said == says);
            let is_declined = matches!(question.decided, Some((_, Says::No)));
            let edited = args["edited"] == true;
            question.name == *name
                && question.runs == 0
                && !is_declined
                && (edited && said(Says::YesBut)
                    || !edited && said(Says::Yes) && *args == question.ask.args())
        };
        let question = self.all.values_mut().find(fits);
        let question = question.unwrap_or_else(|| panic!("{name:?} ran without a yes to {args}"));
        question.runs += 1;
        question.ask
    }
}
