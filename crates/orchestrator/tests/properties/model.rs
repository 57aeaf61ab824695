//! The reference: what a history may look like. Knows nothing of how the orchestrator works.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use toolwright_contract::{Envelope, ErrorKind};

use crate::desk::BUDGET;
use crate::history::{Event, Task};
use crate::player::token;
use crate::questions::Questions;
use crate::steps::{Ask, Kind, Tool};

/// A call's name: ids belong to their session.
pub type Name = (usize, String);

#[derive(Debug, Default)]
pub struct Model {
    /// What was sent and has no answer yet: the session, the calls, and what was known of each when it was sent.
    waiting: HashMap<Task, Vec<Waiting>>,
    calls: HashMap<Name, Known>,
    turns: BTreeMap<usize, u64>,
    /// For each retrieval that ran, the turns that may have paid: from the one in which it was sent to the one in which
    /// its handler began.
    paid: HashMap<usize, Vec<(u64, u64)>>,
    pub questions: Questions,
    pub answers: Answers,
}

/// How many rows the audit must have, and may have.
#[derive(Debug, Default)]
pub struct Answers {
    /// By session, call and outcome.
    pub given: HashMap<(String, String, String), usize>,
    pub count: usize,
    /// Those that nobody waited for.
    pub lost: usize,
}

#[derive(Debug, Clone)]
struct Waiting {
    session: usize,
    ask: Ask,
    /// What the id stood for already.
    known: Option<Ask>,
    /// The result that was told already.
    told: Option<Outcome>,
}

type Outcome = Result<Value, (ErrorKind, String)>;

/// What is known of an id.
#[derive(Debug, Default)]
struct Known {
    /// What was ever asked under this id, and in which turn it was first sent.
    asked: BTreeMap<Ask, u64>,
    /// What it stands for: it ran, or the user has declined it.
    stands: Option<Ask>,
    runs: Vec<(u64, Value)>,
    /// How many callers went away before they had an answer.
    gone: usize,
    told: Option<Outcome>,
}

impl Model {
    pub fn judge(&mut self, events: &[Event]) {
        for event in events {
            self.note(event);
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Sent { task, session, ask } => self.sent(*task, *session, *ask),
            Event::Ran { session, id, tool, args, run } => {
                self.ran((*session, id.clone()), tool, args, *run);
            }
            Event::Answered { task, envelopes } => self.answered(*task, envelopes),
            Event::Gone { task } => self.gone(*task),
            Event::Turn { session } => *self.turns.entry(*session).or_default() += 1,
            Event::Replied { task, reply } => self.questions.replied(*task, reply),
            Event::Refused { task } => self.questions.refused(*task),
            Event::Heeded { task, envelope } => self.heeded(*task, envelope),
        }
    }

    fn sent(&mut self, task: Task, session: usize, ask: Ask) {
        let turn = self.turn(session);
        let known = self.calls.entry((session, ask.id())).or_default();
        known.asked.entry(ask).or_insert(turn);
        self.questions.sent((session, ask.id()), ask);
        let waiting = Waiting { session, ask, known: known.stands, told: known.told.clone() };
        self.waiting.entry(task).or_default().push(waiting);
    }

    fn gone(&mut self, task: Task) {
        self.questions.gone(task);
        let waiting = self.waiting.remove(&task).unwrap_or_default();
        // An approval has a row of its own, beside its call's.
        self.answers.lost += waiting.len().max(2);
        for Waiting { session, ask, .. } in waiting {
            self.calls.entry((session, ask.id())).or_default().gone += 1;
        }
    }

    /// A handler began: was it allowed to?
    fn ran(&mut self, name: Name, tool: &str, args: &Value, run: u64) {
        let known = self.calls.get_mut(&name).unwrap_or_else(|| panic!("nobody asked for {name:?}"));
        let ask = match tool {
            "pay" => self.questions.used(&name, args),
            _ => {
                let fits = |ask: &&Ask| ask.tool.name() == tool && ask.args() == *args;
                let ask = known.asked.keys().find(fits).copied();
                ask.unwrap_or_else(|| panic!("nobody asked for {tool} {args} as {name:?}"))
            }
        };
        assert!(known.stands.is_none_or(|earlier| earlier == ask), "{name:?} ran as {ask:?}, too: {known:?}");
        assert!(known.told.is_none(), "{name:?} ran after its result was told: {known:?}");
        known.stands = Some(ask);
        known.runs.push((run, args.clone()));
        let most = if ask.tool == Tool::Find { 1 + known.gone } else { 1 };
        assert!(known.runs.len() <= most, "{name:?} ran too often: {known:?}");
        if ask.tool == Tool::Find && known.runs.len() == 1 {
            let sent = known.asked[&ask];
            let (session, now) = (name.0, self.turn(name.0));
            let paid = self.paid.entry(session).or_default();
            paid.push((sent, now));
            assert!(is_affordable(paid), "more than the budget by turn {now} of {session}: {paid:?}");
        }
    }

    fn turn(&self, session: usize) -> u64 {
        self.turns.get(&session).copied().unwrap_or(0)
    }

    fn answered(&mut self, task: Task, envelopes: &[Envelope]) {
        let waiting = self.waiting.remove(&task).unwrap();
        assert_eq!(waiting.len(), envelopes.len(), "{envelopes:?}");
        for (waiting, envelope) in waiting.iter().zip(envelopes) {
            let Waiting { session, ask, .. } = waiting;
            let meta = &envelope.meta;
            assert_eq!((&meta.execution_id, &*meta.tool), (&ask.id(), ask.tool.name()), "not in order");
            well_formed(envelope);
            self.answers.give(*session, envelope);
            self.answer(waiting, envelope);
        }
    }

    fn answer(&mut self, waiting: &Waiting, envelope: &Envelope) {
        let Waiting { session, ask, known, told } = waiting;
        let name = (*session, ask.id());
        let outcome = outcome(envelope);
        let is_conflict = matches!(outcome, Err((ErrorKind::Conflict, _)));
        if known.is_some_and(|known| known != *ask) {
            return assert!(is_conflict, "{ask:?} is not {known:?}: {outcome:?}");
        }
        if let Some(told) = told {
            return assert_eq!(outcome, *told, "{name:?} was answered differently");
        }
        match &outcome {
            Err((ErrorKind::Conflict, _)) => {
                let others = self.calls[&name].asked.keys().any(|other| other != ask);
                assert!(others, "{name:?} stands for {ask:?} alone");
            }
            Err((ErrorKind::BudgetExceeded, _)) => {
                assert_eq!(ask.tool, Tool::Find);
                let others = self.calls.iter().filter(|((of, _), _)| of == session);
                let finds =
                    others.flat_map(|(_, known)| known.asked.keys()).filter(|it| it.tool == Tool::Find);
                // This one may have been paid for itself, by a caller who went away.
                assert!(finds.count() >= BUDGET as usize, "{name:?} could have been paid for");
            }
            Err((ErrorKind::ConfirmationRequired, _)) => {
                assert_eq!(ask.tool, Tool::Pay);
                let (token, question) = token(envelope).expect("there is a token");
                self.questions.asked(&question, token, &name, *ask, envelope);
            }
            _ => self.told(&name, *ask, outcome),
        }
    }

    /// What a handler's run came to: always the same.
    fn told(&mut self, name: &Name, ask: Ask, outcome: Outcome) {
        let known = self.calls.get_mut(name).unwrap();
        assert!(known.told.as_ref().is_none_or(|told| *told == outcome), "{name:?}: {known:?} {outcome:?}");
        if is_no(&outcome) {
            assert!(self.questions.may_be_declined(name, ask), "nobody has declined {name:?}");
            assert!(known.runs.is_empty(), "{name:?} ran and was declined: {known:?}");
            (known.stands, known.told) = (Some(ask), Some(outcome));
            return;
        }
        assert_eq!(known.stands, Some(ask), "{name:?} has a result without a run: {outcome:?}");
        let (run, args) = known.runs.last().unwrap();
        let fails = args["fails"] == true;
        match &outcome {
            Ok(data) => assert!(!fails && data["run"] == *run, "{data} is not of {known:?}"),
            Err((ErrorKind::Permanent, message)) => {
                assert!(fails && message.ends_with(&format!("run {run}")), "{message}: {known:?}");
            }
            Err(other) => panic!("{name:?}: {other:?}"),
        }
        assert!(ask.tool == Tool::Pay || fails == (ask.kind == Kind::Fails));
        known.told = Some(outcome);
    }

    /// A reply was heeded: a no ends the question, a yes has a result.
    fn heeded(&mut self, task: Task, envelope: &Envelope) {
        let heeded = self.questions.heeded(task);
        well_formed(envelope);
        let (session, id) = &heeded.name;
        self.answers.row(*session, id, if heeded.is_yes { "approved" } else { "rejected" });
        if !heeded.is_yes {
            return assert!(is_no(&outcome(envelope)), "{envelope:?}");
        }
        self.answers.give(*session, envelope);
        match outcome(envelope) {
            // The id was used for something else while the user thought about it.
            Err((ErrorKind::Conflict, _)) => {
                // That the approval came to nothing may have a row of its own.
                self.answers.lost += 1;
                assert_ne!(self.calls[&heeded.name].stands, Some(heeded.ask), "{heeded:?}");
            }
            outcome => self.told(&heeded.name, heeded.ask, outcome),
        }
    }

    /// Whether it is known what this id stands for.
    pub fn is_settled(&self, name: &Name) -> bool {
        self.calls.get(name).is_some_and(|known| known.stands.is_some())
    }
}

impl Answers {
    fn give(&mut self, session: usize, envelope: &Envelope) {
        let outcome = envelope.outcome.as_ref().err().map_or("ok", |failure| failure.kind.as_str());
        self.row(session, &envelope.meta.execution_id, outcome);
    }

    fn row(&mut self, session: usize, id: &str, outcome: &str) {
        let key = (crate::desk::session(session), id.to_owned(), outcome.to_owned());
        *self.given.entry(key).or_default() += 1;
        self.count += 1;
    }
}

/// Whether this is what a call comes to that the user did not want.
fn is_no(outcome: &Outcome) -> bool {
    matches!(outcome, Err((ErrorKind::Permanent, message)) if message.starts_with("The user declined"))
}

/// Whether turns can have paid for these: in any span of turns, no more than its turns allow.
fn is_affordable(paid: &[(u64, u64)]) -> bool {
    let spans = paid.iter().flat_map(|(from, _)| paid.iter().map(move |(_, to)| (*from, *to)));
    spans.filter(|(from, to)| from <= to).all(|(from, to)| {
        let within = paid.iter().filter(|(sent, ran)| from <= *sent && *ran <= to).count();
        within as u64 <= u64::from(BUDGET) * (to - from + 1)
    })
}

fn outcome(envelope: &Envelope) -> Outcome {
    let told = |failure: &toolwright_contract::Failure| (failure.kind, failure.message.clone());
    envelope.outcome.as_ref().map(|success| (*success.data).clone()).map_err(told)
}

fn well_formed(envelope: &Envelope) {
    let text = serde_json::to_string(envelope).unwrap();
    assert_eq!(serde_json::from_str::<Envelope>(&text).unwrap(), *envelope);
    let Err(failure) = &envelope.outcome else { return };
    assert!(!failure.message.is_empty(), "{text}");
    let is_the_handlers = failure.kind == ErrorKind::Permanent && failure.message.starts_with("it failed");
    let is_refusal = !is_the_handlers;
    assert!(!is_refusal || failure.suggestion.as_ref().is_some_and(|it| !it.is_empty()), "{text}");
    assert!(!failure.partial_side_effects, "nothing is in doubt here: {text}");
}
