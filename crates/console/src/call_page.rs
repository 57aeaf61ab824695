//! One call: its steps, its arguments and its result, its history and its nested calls.

use askama::Template;

use crate::format;
use crate::layout::Layout;
use crate::parts::{Chip, Code, CsrfField, Notice, Time};

/// The width of the waterfall's bars.
const WIDTH: f64 = 400.0;

#[derive(Debug, Template)]
#[template(path = "call.html")]
pub struct CallPage {
    pub layout: Layout,
    pub tool: String,
    pub tool_href: String,
    pub execution: String,
    pub session: String,
    pub session_href: String,
    pub outcome: Chip,
    pub time: Time,
    pub facts: Vec<(&'static str, String)>,
    pub notices: Vec<Notice>,
    pub steps: Vec<StepBar>,
    /// The call whose handler made this one.
    pub parent_href: Option<String>,
    pub args: Option<Code>,
    pub args_note: String,
    pub envelope: Option<Code>,
    pub envelope_note: String,
    pub history: Vec<HistoryRow>,
    pub nested: Vec<NestedRow>,
    /// The form to make the call again; `None` where the tool is gone.
    pub again: Option<RepeatForm>,
}

/// One step of a waterfall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepBar {
    pub name: String,
    pub starts: String,
    pub took: String,
    x: String,
    width: String,
    is_run: bool,
}

/// The bars of steps that follow one another, with their durations in microseconds.
pub fn waterfall<'a>(steps: impl Iterator<Item = (&'a str, u32)> + Clone) -> Vec<StepBar> {
    let total: u64 = steps.clone().map(|(_, micros)| u64::from(micros)).sum::<u64>().max(1);
    let scale = |micros: u64| micros as f64 / total as f64 * WIDTH;
    let (mut before, mut attempts) = (0_u64, 0);
    let has_retries = steps.clone().filter(|(name, _)| *name == "run").count() > 1;
    steps
        .map(|(name, micros)| {
            let start = before;
            before += u64::from(micros);
            attempts += u32::from(name == "run");
            StepBar {
                name: if name == "run" && has_retries { format!("run {attempts}") } else { name.to_owned() },
                starts: micros_text(start),
                took: micros_text(u64::from(micros)),
                x: format!("{:.1}", scale(start).min(WIDTH - 1.5)),
                // The minimum width of a bar.
                width: format!("{:.1}", scale(u64::from(micros)).max(1.5)),
                is_run: name == "run",
            }
        })
        .collect()
}

/// `12 µs`, `3.4 ms`, `1.2 s`.
pub fn micros_text(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        _ => format::duration(micros as f64 / 1000.0),
    }
}

/// One audit entry of the call.
#[derive(Debug, Clone)]
pub struct HistoryRow {
    pub number: u64,
    pub time: Time,
    pub event: String,
    pub outcome: Option<Chip>,
    pub duration: String,
    pub note: String,
}

/// A nested call, at any depth.
#[derive(Debug, Clone)]
pub struct NestedRow {
    /// The depth in the tree, from 1.
    pub depth: usize,
    pub tool: String,
    pub href: String,
    pub execution: String,
    pub outcome: Chip,
    pub duration: String,
}

/// The form to make the call again.
#[derive(Debug, Clone)]
pub struct RepeatForm {
    pub csrf: CsrfField,
    pub action: String,
    pub args: String,
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waterfall_has_a_bar_for_each_step_in_its_place() {
        let steps = [("resolve", 10), ("run", 2_000), ("backoff", 100_000), ("run", 97_990), ("settle", 0)];
        let bars = waterfall(steps.into_iter());
        let seen = bars.iter().map(|bar| (bar.name.as_str(), &*bar.starts, &*bar.took, &*bar.x, &*bar.width));
        let seen: Vec<_> = seen.collect();
        assert_eq!(
            seen,
            [
                ("resolve", "0 µs", "10 µs", "0.0", "1.5"),
                ("run 1", "10 µs", "2 ms", "0.0", "4.0"),
                ("backoff", "2.0 ms", "100 ms", "4.0", "200.0"),
                ("run 2", "102 ms", "98 ms", "204.0", "196.0"),
                ("settle", "200 ms", "0 µs", "398.5", "1.5"),
            ]
        );
        assert_eq!(waterfall(std::iter::empty()), []);
    }
}
