//! What is known of all calls, over the lives of all processes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::log::{Answer, Effect, Event, Line, Reader};
use crate::orders::{Left, Step};
use crate::plan::{Fate, Id, Tool, mixed};

#[derive(Debug)]
pub struct Ledger {
    pub seed: u64,
    directory: PathBuf,
    log: Reader,
    lines: Reader,
    pub calls: BTreeMap<Id, Known>,
    pub effects: HashMap<Id, Vec<Effect>>,
}

/// What is known of a call.
#[derive(Debug)]
pub struct Known {
    pub step: Step,
    pub token: Option<String>,
    /// The process that was sent it first.
    pub sent: u64,
    /// By which process, and what.
    pub answers: Vec<(u64, Answer)>,
    /// Somebody has said yes, or was about to.
    pub is_approved: bool,
    pub is_rejected: bool,
    /// The last process found its question waiting.
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

    /// Reads what the last process has left.
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

    /// The calls that have no answer yet and should have one.
    pub fn unanswered(&self) -> Vec<Left> {
        let is_open = |id: Id, known: &Known| match known.step {
            Step::Done => false,
            Step::Asked => self.tool(id) != Tool::Careful(Fate::Nothing),
            Step::Sent | Step::Approving | Step::Rejecting => true,
        };
        self.lefts(is_open)
    }

    /// Some that have been answered.
    pub fn sample(&self, count: usize, salt: u64) -> Vec<Left> {
        let mut answered = self.lefts(|_, known| known.step == Step::Done && !known.is_rejected);
        answered.sort_by_key(|left| mixed(salt, left.id.caller, left.id.number));
        answered.truncate(count);
        answered
    }

    /// All but those that the user does not want.
    pub fn all(&self) -> Vec<Left> {
        self.lefts(|_, known| !known.is_rejected)
    }

    fn lefts(&self, wanted: impl Fn(Id, &Known) -> bool) -> Vec<Left> {
        let wanted = self.calls.iter().filter(|(id, known)| wanted(**id, known));
        let left =
            |(id, known): (&Id, &Known)| Left { id: *id, token: known.token.clone(), step: known.step };
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
            Event::Asked { token } => {
                (self.token, self.step) = (Some(token), Step::Asked);
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
