//! The history of each call, from the logs of all processes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::instructions::{SentCall, Step};
use crate::log::{Answer, Effect, Event, Line, Reader};
use crate::plan::{Id, Tool, UserAnswer, hash_of};

#[derive(Debug)]
pub struct Ledger {
    pub seed: u64,
    directory: PathBuf,
    log: Reader,
    lines: Reader,
    pub calls: BTreeMap<Id, Known>,
    pub effects: HashMap<Id, Vec<Effect>>,
}

/// The history of one call, from the logs.
#[derive(Debug)]
pub struct Known {
    pub step: Step,
    pub token: Option<String>,
    /// The process that was sent it first.
    pub sent: u64,
    /// Results, and the process that returned each.
    pub answers: Vec<(u64, Answer)>,
    /// An approval was sent, or was about to be.
    pub is_approved: bool,
    pub is_rejected: bool,
    /// The last process found its confirmation request pending.
    pub is_waiting: bool,
}

impl Ledger {
    pub fn new(seed: u64, directory: &Path) -> Self {
        Self {
            seed,
            directory: directory.to_owned(),
            log: Reader::default(),
            lines: Reader::default(),
            calls: BTreeMap::new(),
            effects: HashMap::new(),
        }
    }

    /// Reads what the last process has written.
    pub fn read(&mut self) {
        for line in self.log.new_lines::<Line>(&self.directory.join("log")) {
            let sent = line.generation;
            self.calls.entry(line.id).or_insert_with(|| Known::new(sent)).note(line);
        }
        for effect in self.lines.new_lines::<Effect>(&self.directory.join("effects")) {
            self.effects.entry(effect.id).or_default().push(effect);
        }
    }

    /// Lines that were cut off by a kill.
    pub const fn torn(&self) -> usize {
        self.log.torn + self.lines.torn
    }

    pub fn tool(&self, id: Id) -> Tool {
        id.tool(self.seed)
    }

    pub fn effects(&self, id: Id) -> &[Effect] {
        self.effects.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The number of each caller's next call.
    pub fn next(&self, callers: u64) -> Vec<u64> {
        let last = |caller| {
            let all = Id { caller, number: 0 }..=Id { caller, number: u64::MAX };
            self.calls.range(all).next_back().map_or(0, |(id, _)| id.number + 1)
        };
        (0..callers).map(last).collect()
    }

    /// The calls that have no result yet and should have one.
    pub fn unanswered(&self) -> Vec<SentCall> {
        let is_open = |id: Id, known: &Known| match known.step {
            Step::Done => false,
            Step::ConfirmationRequested => self.tool(id) != Tool::Confirmed(UserAnswer::Nothing),
            Step::Sent | Step::Approving | Step::Rejecting => true,
        };
        self.sent_calls(is_open)
    }

    /// Some calls that have a result.
    pub fn sample(&self, count: usize, salt: u64) -> Vec<SentCall> {
        let mut answered = self.sent_calls(|_, known| known.step == Step::Done && !known.is_rejected);
        answered.sort_by_key(|left| hash_of(salt, left.id.caller, left.id.number));
        answered.truncate(count);
        answered
    }

    /// All calls but the rejected ones.
    pub fn all(&self) -> Vec<SentCall> {
        self.sent_calls(|_, known| !known.is_rejected)
    }

    fn sent_calls(&self, wanted: impl Fn(Id, &Known) -> bool) -> Vec<SentCall> {
        let wanted = self.calls.iter().filter(|(id, known)| wanted(**id, known));
        let left =
            |(id, known): (&Id, &Known)| SentCall { id: *id, token: known.token.clone(), step: known.step };
        wanted.map(left).collect()
    }
}

impl Known {
    const fn new(sent: u64) -> Self {
        Self {
            step: Step::Sent,
            token: None,
            sent,
            answers: Vec::new(),
            is_approved: false,
            is_rejected: false,
            is_waiting: false,
        }
    }

    fn note(&mut self, line: Line) {
        match line.event {
            Event::Sent => {}
            Event::ConfirmationRequested { token } => {
                (self.token, self.step) = (Some(token), Step::ConfirmationRequested);
            }
            Event::Approving => (self.is_approved, self.step) = (true, Step::Approving),
            Event::Rejecting => self.step = Step::Rejecting,
            Event::Rejected => (self.is_rejected, self.step) = (true, Step::Done),
            Event::Waiting => self.is_waiting = true,
            Event::Answered(answer) => {
                assert!(!matches!(answer, Answer::Unexpected(_)), "{}: {answer:?}", line.id);
                if !matches!(answer, Answer::TryAgain(_)) {
                    self.step = Step::Done;
                }
                self.answers.push((line.generation, answer));
            }
        }
    }
}
