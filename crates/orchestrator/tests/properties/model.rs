//! The reference model: which histories are allowed. Independent of the implementation.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolwright_contract::{Envelope, ErrorKind};

use crate::confirmations::Confirmations;
use crate::history::{Event, Task};
use crate::player::token;
use crate::steps::{Kind, TestCall, Tool};
use crate::support::BUDGET;

/// The session and id of a call.
pub type Name = (usize, String);

#[derive(Debug, Default)]
pub struct Model {
    /// Calls without a result yet, and what was known of each when it was sent.
    waiting: HashMap<Task, Vec<Waiting>>,
    calls: HashMap<Name, Known>,
    turns: BTreeMap<usize, u64>,
    /// For each retrieval that ran, the turns that may have been charged: from the one in which it was sent to the one
    /// in which its handler started.
    paid: HashMap<usize, Vec<(u64, u64)>>,
    pub confirmations: Confirmations,
    pub answers: Answers,
}

/// How many rows the audit log must have, and may have.
#[derive(Debug, Default)]
pub struct Answers {
    /// By session, call and outcome.
    pub given: HashMap<(String, String, String), usize>,
    pub count: usize,
    /// Results whose caller disconnected.
    pub lost: usize,
}

#[derive(Debug, Clone)]
struct Waiting {
    session: usize,
    test_call: TestCall,
    /// The call that the id belonged to already.
    known: Option<TestCall>,
    /// The result that was returned already.
    result: Option<Outcome>,
}

type Outcome = Result<Value, (ErrorKind, String)>;

/// The model's knowledge of an execution id.
#[derive(Debug, Default)]
struct Known {
    /// The calls that were sent with this id, and the turn of the first.
    asked: BTreeMap<TestCall, u64>,
    /// The call that it belongs to: it ran, or was rejected.
    belongs_to: Option<TestCall>,
    runs: Vec<(u64, Value)>,
    /// How many callers disconnected before they had a result.
    disconnected: usize,
    result: Option<Outcome>,
}

impl Model {
    pub fn judge(&mut self, events: &[Event]) {
        for event in events {
            self.note(event);
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Sent { task, session, test_call } => self.sent(*task, *session, *test_call),
            Event::Ran { session, id, tool, args, run } => {
                self.ran((*session, id.clone()), tool, args, *run);
            }
            Event::Answered { task, envelopes } => self.answered(*task, envelopes),
            Event::Disconnected { task } => self.disconnected(*task),
            Event::Turn { session } => *self.turns.entry(*session).or_default() += 1,
            Event::Replied { task, reply } => self.confirmations.replied(*task, reply),
            Event::Refused { task } => self.confirmations.refused(*task),
            Event::Accepted { task, envelope } => self.accepted(*task, envelope),
        }
    }

    fn sent(&mut self, task: Task, session: usize, test_call: TestCall) {
        let turn = self.turn(session);
        let known = self.calls.entry((session, test_call.id())).or_default();
        known.asked.entry(test_call).or_insert(turn);
        self.confirmations.sent((session, test_call.id()), test_call);
        let waiting = Waiting { session, test_call, known: known.belongs_to, result: known.result.clone() };
        self.waiting.entry(task).or_default().push(waiting);
    }

    fn disconnected(&mut self, task: Task) {
        self.confirmations.disconnected(task);
        let waiting = self.waiting.remove(&task).unwrap_or_default();
        // An approval has a row of its own, beside the call's.
        self.answers.lost += waiting.len().max(2);
        for Waiting { session, test_call, .. } in waiting {
            self.calls.entry((session, test_call.id())).or_default().disconnected += 1;
        }
    }

    /// A handler started: checks that it was allowed to.
    fn ran(&mut self, name: Name, tool: &str, args: &Value, run: u64) {
        let known = self.calls.get_mut(&name).unwrap_or_else(|| panic!("{name:?} was never sent"));
        let test_call = match tool {
            "pay" => self.confirmations.used(&name, args),
            _ => {
                let fits = |test_call: &&TestCall| test_call.tool.name() == tool && test_call.args() == *args;
                let test_call = known.asked.keys().find(fits).copied();
                test_call.unwrap_or_else(|| panic!("{tool} {args} was never sent as {name:?}"))
            }
        };
        assert!(
            known.belongs_to.is_none_or(|earlier| earlier == test_call),
            "{name:?} ran as {test_call:?}, too: {known:?}"
        );
        assert!(known.result.is_none(), "{name:?} ran after its result was returned: {known:?}");
        known.belongs_to = Some(test_call);
        known.runs.push((run, args.clone()));
        let most = if test_call.tool == Tool::Find { 1 + known.disconnected } else { 1 };
        assert!(known.runs.len() <= most, "{name:?} ran too often: {known:?}");
        if test_call.tool == Tool::Find && known.runs.len() == 1 {
            let sent = known.asked[&test_call];
            let (session, now) = (name.0, self.turn(name.0));
            let paid = self.paid.entry(session).or_default();
            paid.push((sent, now));
            assert!(is_affordable(paid), "more than the budget by turn {now} of {session}: {paid:?}");
        }
    }

    fn turn(&self, session: usize) -> u64 {
        self.turns.get(&session).copied().unwrap_or(0)
    }

    fn answered(&mut self, task: Task, envelopes: &[Arc<Envelope>]) {
        let waiting = self.waiting.remove(&task).unwrap();
        assert_eq!(waiting.len(), envelopes.len(), "{envelopes:?}");
        for (waiting, envelope) in waiting.iter().zip(envelopes) {
            let Waiting { session, test_call, .. } = waiting;
            let meta = &envelope.meta;
            assert_eq!(
                (&meta.execution_id, &*meta.tool),
                (&test_call.id(), test_call.tool.name()),
                "not in order"
            );
            well_formed(envelope);
            self.answers.give(*session, envelope);
            self.answer(waiting, envelope);
        }
    }

    fn answer(&mut self, waiting: &Waiting, envelope: &Envelope) {
        let Waiting { session, test_call, known, result } = waiting;
        let name = (*session, test_call.id());
        let outcome = outcome(envelope);
        let is_conflict = matches!(outcome, Err((ErrorKind::Conflict, _)));
        if known.is_some_and(|known| known != *test_call) {
            return assert!(is_conflict, "{test_call:?} is not {known:?}: {outcome:?}");
        }
        if let Some(result) = result {
            return assert_eq!(outcome, *result, "{name:?} got different results");
        }
        match &outcome {
            Err((ErrorKind::Conflict, _)) => {
                let others = self.calls[&name].asked.keys().any(|other| other != test_call);
                assert!(others, "{name:?} belongs to {test_call:?} alone");
            }
            Err((ErrorKind::BudgetExceeded, _)) => {
                assert_eq!(test_call.tool, Tool::Find);
                let others = self.calls.iter().filter(|((of, _), _)| of == session);
                let finds =
                    others.flat_map(|(_, known)| known.asked.keys()).filter(|it| it.tool == Tool::Find);
                // This call may have been charged before, for a caller that disconnected.
                assert!(finds.count() >= BUDGET as usize, "{name:?} was within the budget");
            }
            Err((ErrorKind::ConfirmationRequired, _)) => {
                assert_eq!(test_call.tool, Tool::Pay);
                let (token, confirmation) = token(envelope).expect("the request has a token");
                self.confirmations.record_request(&confirmation, token, &name, *test_call, envelope);
            }
            _ => self.check_result(&name, *test_call, outcome),
        }
    }

    /// Checks that a call always has the same result.
    fn check_result(&mut self, name: &Name, test_call: TestCall, outcome: Outcome) {
        let known = self.calls.get_mut(name).unwrap();
        assert!(
            known.result.as_ref().is_none_or(|result| *result == outcome),
            "{name:?}: {known:?} {outcome:?}"
        );
        if is_rejection(&outcome) {
            assert!(self.confirmations.may_be_declined(name, test_call), "{name:?} was never rejected");
            assert!(known.runs.is_empty(), "{name:?} ran and was rejected: {known:?}");
            (known.belongs_to, known.result) = (Some(test_call), Some(outcome));
            return;
        }
        assert_eq!(known.belongs_to, Some(test_call), "{name:?} has a result without a run: {outcome:?}");
        // A caller that disconnects while the result of a read is being recorded makes the next caller run it again,
        // but the first record counts.
        let may_be_earlier = test_call.tool == Tool::Find && known.disconnected > 0;
        let earlier = known.runs.len() - 1;
        let candidates = if may_be_earlier { &known.runs[..] } else { &known.runs[earlier..] };
        let is_of = |(run, args): &(u64, Value)| {
            let fails = args["fails"] == true;
            assert!(test_call.tool == Tool::Pay || fails == (test_call.kind == Kind::Fails));
            match &outcome {
                Ok(data) => !fails && data["run"] == *run,
                Err((ErrorKind::Permanent, message)) => fails && message.ends_with(&format!("run {run}")),
                Err(other) => panic!("{name:?}: {other:?}"),
            }
        };
        assert!(candidates.iter().any(is_of), "{outcome:?} is not of {known:?}");
        known.result = Some(outcome);
    }

    /// An answer was accepted: a rejection ends the request, an approval has a result.
    fn accepted(&mut self, task: Task, envelope: &Envelope) {
        let accepted = self.confirmations.accepted(task);
        well_formed(envelope);
        let (session, id) = &accepted.name;
        self.answers.row(*session, id, if accepted.is_approval { "approved" } else { "rejected" });
        if !accepted.is_approval {
            return assert!(is_rejection(&outcome(envelope)), "{envelope:?}");
        }
        self.answers.give(*session, envelope);
        match outcome(envelope) {
            // The id was used for another call before the approval.
            Err((ErrorKind::Conflict, _)) => {
                // Closing the approval may have a row of its own.
                self.answers.lost += 1;
                assert_ne!(self.calls[&accepted.name].belongs_to, Some(accepted.test_call), "{accepted:?}");
            }
            outcome => self.check_result(&accepted.name, accepted.test_call, outcome),
        }
    }

    /// Whether it is known to which call this id belongs.
    pub fn is_settled(&self, name: &Name) -> bool {
        self.calls.get(name).is_some_and(|known| known.belongs_to.is_some())
    }
}

impl Answers {
    fn give(&mut self, session: usize, envelope: &Envelope) {
        let outcome = envelope.outcome.as_ref().err().map_or("ok", |failure| failure.kind.as_str());
        self.row(session, &envelope.meta.execution_id, outcome);
    }

    fn row(&mut self, session: usize, id: &str, outcome: &str) {
        let key = (crate::support::session(session), id.to_owned(), outcome.to_owned());
        *self.given.entry(key).or_default() += 1;
        self.count += 1;
    }
}

/// Whether this is the result of a rejected call.
fn is_rejection(outcome: &Outcome) -> bool {
    matches!(outcome, Err((ErrorKind::Permanent, message)) if message.starts_with("The user declined"))
}

/// Whether the budgets suffice: no span of turns has more retrievals than its turns allow.
fn is_affordable(paid: &[(u64, u64)]) -> bool {
    let spans = paid.iter().flat_map(|(from, _)| paid.iter().map(move |(_, to)| (*from, *to)));
    spans.filter(|(from, to)| from <= to).all(|(from, to)| {
        let within = paid.iter().filter(|(sent, ran)| from <= *sent && *ran <= to).count();
        within as u64 <= u64::from(BUDGET) * (to - from + 1)
    })
}

fn outcome(envelope: &Envelope) -> Outcome {
    let result = |failure: &toolwright_contract::Failure| (failure.kind, failure.message.clone());
    envelope.outcome.as_ref().map(|success| (*success.data).clone()).map_err(result)
}

fn well_formed(envelope: &Envelope) {
    let text = serde_json::to_string(envelope).unwrap();
    let parsed: Envelope = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&parsed).unwrap(), text);
    let Err(failure) = &envelope.outcome else { return };
    assert!(!failure.message.is_empty(), "{text}");
    let is_the_handlers = failure.kind == ErrorKind::Permanent && failure.message.starts_with("it failed");
    let is_refusal = !is_the_handlers;
    assert!(!is_refusal || failure.suggestion.as_ref().is_some_and(|it| !it.is_empty()), "{text}");
    assert!(!failure.partial_side_effects, "no outcome is unknown here: {text}");
}
