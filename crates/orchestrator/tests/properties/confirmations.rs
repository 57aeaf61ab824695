//! The part of the model for confirmation requests: which answers count, and what they allow.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use toolwright_contract::Envelope;

use crate::history::{Replied, Task};
use crate::model::Name;
use crate::steps::{TestCall, UserAnswer};

#[derive(Debug, Default)]
pub struct Confirmations {
    all: HashMap<String, Confirmation>,
    /// How often each call was sent.
    sent: HashMap<(Name, TestCall), usize>,
    /// Answers without a result yet.
    waiting: HashMap<Task, Replied>,
}

#[derive(Debug)]
struct Confirmation {
    name: Name,
    test_call: TestCall,
    expires_at: i64,
    tokens: BTreeSet<String>,
    /// Valid answers in time; the first of them may count, even if its sender disconnected.
    replies: Vec<(Task, UserAnswer)>,
    /// The answer that counted.
    decided: Option<(Task, UserAnswer)>,
    runs: usize,
}

/// An answer that counted.
#[derive(Debug)]
pub struct Accepted {
    pub name: Name,
    pub test_call: TestCall,
    pub is_approval: bool,
}

impl Confirmations {
    pub fn sent(&mut self, name: Name, test_call: TestCall) {
        *self.sent.entry((name, test_call)).or_default() += 1;
    }

    pub fn record_request(
        &mut self,
        id: &str,
        token: String,
        name: &Name,
        test_call: TestCall,
        envelope: &Envelope,
    ) {
        let failure = envelope.outcome.as_ref().unwrap_err();
        let request = failure.confirmation.as_ref().unwrap();
        assert_eq!(
            (request.tool.as_str(), &request.args),
            (test_call.tool.name(), &test_call.args()),
            "another call"
        );
        let confirmation = self.all.entry(id.to_owned()).or_insert_with(|| Confirmation {
            name: name.clone(),
            test_call,
            expires_at: request.expires_at,
            tokens: BTreeSet::new(),
            replies: Vec::new(),
            decided: None,
            runs: 0,
        });
        assert_eq!(
            (&confirmation.name, confirmation.test_call),
            (name, test_call),
            "one confirmation request for two calls"
        );
        confirmation.tokens.insert(token);
    }

    pub fn replied(&mut self, task: Task, reply: &Replied) {
        self.waiting.insert(task, reply.clone());
        let confirmation = self.all.get_mut(&reply.confirmation).unwrap();
        let has_token = confirmation.tokens.contains(&reply.token);
        if reply.is_genuine && has_token && reply.now < confirmation.expires_at {
            confirmation.replies.push((task, reply.answer));
        }
    }

    /// Checks that a refused answer had a reason.
    pub fn refused(&mut self, task: Task) {
        let reply = self.waiting.remove(&task).unwrap();
        let confirmation = &self.all[&reply.confirmation];
        let is_late = reply.now >= confirmation.expires_at;
        let others = confirmation.replies.iter().any(|(other, _)| *other != task);
        // A repeated call replaces the token, even if its caller disconnected.
        let may_be_old = self.sent[&(confirmation.name.clone(), confirmation.test_call)] > 1;
        assert!(
            !reply.is_genuine || is_late || others || may_be_old,
            "refused without a reason: {reply:?} {confirmation:?}"
        );
    }

    pub fn disconnected(&mut self, task: Task) {
        self.waiting.remove(&task);
    }

    pub fn accepted(&mut self, task: Task) -> Accepted {
        let reply = self.waiting.remove(&task).unwrap();
        let confirmation = self.all.get_mut(&reply.confirmation).unwrap();
        assert!(
            confirmation.replies.contains(&(task, reply.answer)),
            "this answer must not count: {reply:?} {confirmation:?}"
        );
        let decided = confirmation.decided.replace((task, reply.answer));
        assert_eq!(decided, None, "two answers counted: {confirmation:?}");
        let is_approval = reply.answer != UserAnswer::Reject;
        assert!(is_approval || confirmation.runs == 0, "it ran, and was rejected later: {confirmation:?}");
        Accepted { name: confirmation.name.clone(), test_call: confirmation.test_call, is_approval }
    }

    /// Whether a rejection of this call was sent.
    pub fn may_be_declined(&self, name: &Name, test_call: TestCall) -> bool {
        let is_about =
            |confirmation: &&Confirmation| confirmation.name == *name && confirmation.test_call == test_call;
        let said_no = |confirmation: &Confirmation| {
            confirmation.replies.iter().any(|(_, answer)| *answer == UserAnswer::Reject)
        };
        self.all.values().filter(is_about).any(said_no)
    }

    /// A call that needs approval started: checks that these arguments were approved, and the approval was unused.
    pub fn used(&mut self, name: &Name, args: &Value) -> TestCall {
        let fits = |confirmation: &&mut Confirmation| {
            let said = |answer| confirmation.replies.iter().any(|(_, said)| *said == answer);
            let is_declined = matches!(confirmation.decided, Some((_, UserAnswer::Reject)));
            let edited = args["edited"] == true;
            confirmation.name == *name
                && confirmation.runs == 0
                && !is_declined
                && (edited && said(UserAnswer::ApproveEdited)
                    || !edited && said(UserAnswer::Approve) && *args == confirmation.test_call.args())
        };
        let confirmation = self.all.values_mut().find(fits);
        let confirmation =
            confirmation.unwrap_or_else(|| panic!("{name:?} ran without an approval of {args}"));
        confirmation.runs += 1;
        confirmation.test_call
    }
}
