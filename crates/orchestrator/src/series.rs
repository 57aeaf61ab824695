//! Calls per minute, for charts: the last day of this process. A restart begins anew; a monitoring system that reads
//! `/metrics` has longer series.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolwright_contract::ErrorKind;

use crate::finish::End;
use crate::metrics::ToolMetrics;
use crate::orchestrator::Orchestrator;

/// How many minutes are held.
pub const MAX_MINUTES: usize = 24 * 60;
/// How many rows of a tool and version in a minute are held together: with more, the oldest minutes go first.
const MAX_ROWS: usize = 50_000;
const MINUTE_MS: i64 = 60_000;

#[derive(Default)]
pub(crate) struct Series(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    minutes: VecDeque<Minute>,
    rows: usize,
}

/// The numbers of one minute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Minute {
    /// Its beginning, in milliseconds since 1970.
    pub at: i64,
    /// By tool and version.
    pub tools: BTreeMap<(String, String), ToolMetrics>,
}

impl Series {
    /// Counts a call that ended at this time.
    pub fn count(
        &self,
        now: i64,
        (tool, version): (&str, &str),
        end: End,
        error: Option<ErrorKind>,
        elapsed: Duration,
    ) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = now - now.rem_euclid(MINUTE_MS);
        // The clock never goes back by more than the disorder of threads.
        if ring.minutes.back().is_none_or(|last| last.at < at) {
            ring.minutes.push_back(Minute { at, ..Minute::default() });
        }
        let Some(minute) = ring.minutes.back_mut() else { return };
        let before = minute.tools.len();
        let row = minute.tools.entry((tool.to_owned(), version.to_owned())).or_default();
        row.count(end, error, elapsed, false);
        let added = minute.tools.len() - before;
        ring.rows += added;
        while ring.minutes.len() > MAX_MINUTES || (ring.rows > MAX_ROWS && ring.minutes.len() > 1) {
            let Some(oldest) = ring.minutes.pop_front() else { break };
            ring.rows -= oldest.tools.len();
        }
    }

    fn read(&self, from: i64) -> Vec<Minute> {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = ring.minutes.partition_point(|minute| minute.at < from);
        ring.minutes.range(start..).cloned().collect()
    }
}

impl Orchestrator {
    /// The minutes from this time on in which calls ended, oldest first.
    pub fn minutes(&self, from: i64) -> Vec<Minute> {
        self.0.series.read(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_minute_and_old_minutes_go() {
        let series = Series::default();
        let count = |now, tool: &str, error| {
            series.count(now, (tool, "1.0.0"), End::Ran, error, Duration::from_millis(3));
        };
        count(59_999, "find", None);
        count(60_000, "find", None);
        count(61_000, "find", Some(ErrorKind::Transient));
        count(62_000, "act", None);
        let minutes = series.read(0);
        assert_eq!(minutes.iter().map(|minute| minute.at).collect::<Vec<_>>(), [0, 60_000]);
        let find = &minutes[1].tools[&("find".to_owned(), "1.0.0".to_owned())];
        assert_eq!((find.calls, find.errors.get("TRANSIENT")), (2, Some(&1)));
        assert_eq!(series.read(60_000).len(), 1);
        for minute in 2..2000 {
            count(minute * 60_000, "find", None);
        }
        let minutes = series.read(0);
        assert_eq!((minutes.len(), minutes[0].at), (MAX_MINUTES, (2000 - MAX_MINUTES as i64) * 60_000));
    }

    #[test]
    fn many_tools_take_a_limited_amount_of_memory() {
        let series = Series::default();
        for minute in 0..8 {
            for tool in 0..10_000 {
                let name = format!("tool_{tool}");
                series.count(minute * 60_000, (&name, "1.0.0"), End::Ran, None, Duration::ZERO);
            }
        }
        let rows: usize = series.read(0).iter().map(|minute| minute.tools.len()).sum();
        assert_eq!(rows, MAX_ROWS);
    }
}
