//! How long each step of a call took. The steps follow one another without gaps, so durations are enough.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// More steps than this, of a call that waits again and again, count for the last one.
const MAX_STEPS: usize = 32;

/// A step of the path of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStep {
    /// Finds session and toolset.
    Resolve,
    /// Waits for the same execution id, in this process or another.
    Wait,
    /// Looks for a recorded envelope.
    Replay,
    /// Prepares the tool and passes the gates.
    Admit,
    /// Renders the preview of a confirmation request.
    Preview,
    /// Waits for a seat.
    Seat,
    Claim,
    /// One attempt of the handler.
    Run,
    /// The pause before the next attempt.
    Backoff,
    /// Applies intents and builds the record. Writing it is not included.
    Settle,
}

impl CallStep {
    const ALL: [Self; 10] = [
        Self::Resolve,
        Self::Wait,
        Self::Replay,
        Self::Admit,
        Self::Preview,
        Self::Seat,
        Self::Claim,
        Self::Run,
        Self::Backoff,
        Self::Settle,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Wait => "wait",
            Self::Replay => "replay",
            Self::Admit => "admit",
            Self::Preview => "preview",
            Self::Seat => "seat",
            Self::Claim => "claim",
            Self::Run => "run",
            Self::Backoff => "backoff",
            Self::Settle => "settle",
        }
    }
}

/// The steps of a call in their order, with their durations in microseconds. As text: `resolve=12 admit=30 run=1500`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps(Vec<(CallStep, u32)>);

impl Steps {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (CallStep, u32)> {
        self.0.iter().copied()
    }

    fn push(&mut self, step: CallStep, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let is_full = self.0.len() == MAX_STEPS;
        match self.0.last_mut().filter(|_| is_full) {
            Some((_, last)) => *last = last.saturating_add(micros),
            None => self.0.push((step, micros)),
        }
    }
}

impl FromIterator<(CallStep, u32)> for Steps {
    fn from_iter<T: IntoIterator<Item = (CallStep, u32)>>(steps: T) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (step, micros)) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(formatter, "{space}{}={micros}", step.as_str())?;
        }
        Ok(())
    }
}

impl FromStr for Steps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let step = |part: &str| {
            let (name, micros) = part.split_once('=')?;
            let step = CallStep::ALL.into_iter().find(|step| step.as_str() == name)?;
            Some((step, micros.parse().ok()?))
        };
        let steps = text.split_whitespace().map(|part| {
            step(part).ok_or_else(|| format!("`{part}` is not a step and its duration in microseconds"))
        });
        steps.collect::<Result<_, _>>().map(Self)
    }
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Measures the steps of a call that runs.
#[derive(Debug)]
pub(crate) struct StepTimer {
    current: CallStep,
    since: Instant,
    done: Steps,
}

impl StepTimer {
    /// Starts the timer with this step and time.
    pub fn new(first: CallStep, since: Instant) -> Self {
        Self { current: first, since, done: Steps(Vec::with_capacity(8)) }
    }

    /// Ends the current step and begins the next.
    pub fn begin(&mut self, step: CallStep) {
        let now = Instant::now();
        self.done.push(self.current, now - self.since);
        (self.current, self.since) = (step, now);
    }

    /// The steps so far; the current one ends now.
    pub fn steps(&self) -> Steps {
        let mut steps = self.done.clone();
        steps.push(self.current, self.since.elapsed());
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_as_they_were_written() {
        let steps: Steps = CallStep::ALL.into_iter().zip(1..).collect();
        let text = serde_json::to_string(&steps).unwrap();
        assert!(text.starts_with("\"resolve=1 wait=2 replay=3 "), "{text}");
        assert_eq!(serde_json::from_str::<Steps>(&text).unwrap(), steps);
        assert!("resolve=1 sing=2".parse::<Steps>().unwrap_err().contains("`sing=2`"));
        assert_eq!("".parse(), Ok(Steps::default()));
    }

    #[test]
    fn a_timer_names_every_step_and_is_bounded() {
        let mut timer = StepTimer::new(CallStep::Resolve, Instant::now());
        for step in [CallStep::Admit, CallStep::Run, CallStep::Backoff, CallStep::Run] {
            timer.begin(step);
        }
        let names: Vec<&str> = timer.steps().iter().map(|(step, _)| step.as_str()).collect();
        assert_eq!(names, ["resolve", "admit", "run", "backoff", "run"]);
        (0..1000).for_each(|_| timer.begin(CallStep::Wait));
        assert_eq!(timer.steps().iter().count(), MAX_STEPS);
    }
}
