//! The counts of each minute of the last day, for charts. Each process writes its minutes to the store when they are
//! over, and reads those of other processes, and of those before a restart. A process that is killed loses the minute
//! that it counts. A monitoring system that reads `/metrics` has longer series.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolwright_contract::ErrorKind;

use crate::durations::Durations;
use crate::finish::ExecutionEnd;
use crate::ids;
use crate::metrics::{ExceededLimits, ToolMetrics};
use crate::orchestrator::Orchestrator;
use crate::store::{self, Backend, MinuteRecord};
use crate::stored_minute;

/// How many minutes are held.
pub const MAX_MINUTES: usize = 24 * 60;
/// How many rows of a tool and version in a minute are held together: with more, the oldest minutes go first.
const MAX_ROWS: usize = 50_000;
const MINUTE_MS: i64 = 60_000;
/// Calls that ended within a minute are counted at most so much later.
const GRACE_MS: i64 = 2000;

/// The numbers of one minute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Minute {
    /// Its beginning, in milliseconds since 1970.
    pub at: i64,
    /// By tool and version.
    pub tools: BTreeMap<(String, String), ToolMetrics>,
    /// Counters of other crates, by name.
    pub counts: BTreeMap<String, u64>,
    /// Measurements of other crates, by name.
    pub durations: BTreeMap<String, Durations>,
}

pub(crate) struct Series {
    /// The name of this process in the store.
    process: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    own: Minutes,
    /// Those of other processes.
    others: Minutes,
    /// The minutes of other processes that were read.
    read: HashSet<(i64, String)>,
    /// Own minutes before this time are in the store.
    saved_until: i64,
    /// Minutes of other processes before this time were read.
    read_until: i64,
}

/// Minutes by their beginning.
#[derive(Default)]
struct Minutes {
    by_time: BTreeMap<i64, Minute>,
    rows: usize,
}

impl Default for Series {
    fn default() -> Self {
        let process = toolwright_registry::hex(&ids::random::<8>());
        Self { process, state: Mutex::default() }
    }
}

impl Minute {
    /// Adds the numbers of the same minute.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (tool, metrics) in &other.tools {
            self.tools.entry(tool.clone()).or_default().add(metrics);
        }
        for (name, count) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (name, durations) in &other.durations {
            self.durations.entry(name.clone()).or_default().merge(durations);
        }
    }
}

impl Minutes {
    /// Changes the numbers of the minute that begins at this time.
    fn change(&mut self, at: i64, change: impl FnOnce(&mut Minute)) {
        let minute = self.by_time.entry(at).or_insert_with(|| Minute { at, ..Minute::default() });
        let before = minute.tools.len();
        change(minute);
        self.rows += minute.tools.len() - before;
        while self.by_time.len() > MAX_MINUTES || (self.rows > MAX_ROWS && self.by_time.len() > 1) {
            let Some((_, oldest)) = self.by_time.pop_first() else { break };
            self.rows -= oldest.tools.len();
        }
    }

    /// The beginning of the minute of a time. The clock never goes back by more than the disorder of threads.
    fn minute_of(&self, now: i64) -> i64 {
        let latest = self.by_time.last_key_value().map_or(i64::MIN, |(at, _)| *at);
        latest.max(now - now.rem_euclid(MINUTE_MS))
    }
}

impl Series {
    /// Counts a call that ended at this time.
    pub fn count(
        &self,
        now: i64,
        (tool, version): (&str, &str),
        end: ExecutionEnd,
        error: Option<ErrorKind>,
        elapsed: Duration,
    ) {
        self.change(now, |minute| {
            let row = minute.tools.entry((tool.to_owned(), version.to_owned())).or_default();
            row.count(end, error, elapsed, ExceededLimits::default());
        });
    }

    /// Changes the numbers of this process in the minute of this time.
    fn change(&self, now: i64, change: impl FnOnce(&mut Minute)) {
        let mut state = self.lock();
        let at = state.own.minute_of(now);
        state.own.change(at, change);
    }

    fn read(&self, from: i64) -> Vec<Minute> {
        let state = self.lock();
        let mut all: BTreeMap<i64, Minute> =
            state.others.by_time.range(from..).map(|(at, minute)| (*at, minute.clone())).collect();
        for (at, minute) in state.own.by_time.range(from..) {
            match all.get_mut(at) {
                Some(both) => both.merge(minute),
                None => _ = all.insert(*at, minute.clone()),
            }
        }
        all.into_values().collect()
    }

    fn totals(&self, from: i64, tools: &HashSet<&str>) -> BTreeMap<(String, String), ToolMetrics> {
        let state = self.lock();
        let minutes = state.own.by_time.range(from..).chain(state.others.by_time.range(from..));
        let mut totals = BTreeMap::<_, ToolMetrics>::new();
        for ((tool, version), metrics) in minutes.flat_map(|(_, minute)| &minute.tools) {
            if tools.contains(tool.as_str()) {
                totals.entry((tool.clone(), version.clone())).or_default().add(metrics);
            }
        }
        totals
    }

    /// The own minutes before this time that are not in the store.
    fn unsaved(&self, until: i64) -> Vec<MinuteRecord> {
        let state = self.lock();
        let minutes = state.own.by_time.range(state.saved_until..until.max(state.saved_until));
        let record = |(at, minute): (&i64, &Minute)| MinuteRecord {
            at: *at,
            process: self.process.clone(),
            content: stored_minute::write(minute).into(),
        };
        minutes.map(record).collect()
    }

    /// Adds minutes of other processes, oldest first, unless they were added before: the newest ones that there is
    /// memory for.
    fn add_others(&self, mut records: Vec<MinuteRecord>) {
        {
            let state = self.lock();
            records.retain(|record| {
                record.process != self.process && !state.read.contains(&(record.at, record.process.clone()))
            });
        }
        // Read without the lock, which every call takes.
        let mut minutes = Vec::new();
        let mut rows = 0;
        for record in records.into_iter().rev() {
            if rows >= MAX_ROWS {
                break;
            }
            match stored_minute::read(&record.content) {
                Ok(minute) => {
                    rows += minute.tools.len();
                    minutes.push((record, minute));
                }
                Err(error) => tracing::warn!("the stored numbers of a minute cannot be read: {error}"),
            }
        }
        let mut state = self.lock();
        for (MinuteRecord { at, process, .. }, minute) in minutes {
            if state.read.insert((at, process)) {
                state.others.change(at, |own| own.merge(&minute));
            }
        }
        let first = state.others.by_time.first_key_value().map_or(i64::MIN, |(at, _)| *at);
        state.read.retain(|(at, _)| *at >= first);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orchestrator {
    /// The minutes from this time on in which something happened, oldest first.
    pub fn minutes(&self, from: i64) -> Vec<Minute> {
        self.0.series.read(from)
    }

    /// The numbers of these tools from this time on, by tool and version.
    pub fn tool_totals(&self, from: i64, tools: &HashSet<&str>) -> BTreeMap<(String, String), ToolMetrics> {
        self.0.series.totals(from, tools)
    }

    /// Adds to a count of this minute.
    pub fn count(&self, name: &str, amount: u64) {
        let add = |minute: &mut Minute| *minute.counts.entry(name.to_owned()).or_default() += amount;
        self.0.series.change(self.now(), add);
    }

    /// Adds a duration that ended in this minute.
    pub fn measure(&self, name: &str, duration: Duration) {
        let add = |minute: &mut Minute| minute.durations.entry(name.to_owned()).or_default().add(duration);
        self.0.series.change(self.now(), add);
    }

    /// Stores the minutes that are over, and reads those of other processes once a minute. Called every few seconds.
    pub async fn exchange_minutes(&self) -> store::Result<()> {
        let now = self.now() - GRACE_MS;
        let end = now - now.rem_euclid(MINUTE_MS);
        self.save_minutes(end).await?;
        let series = &self.0.series;
        let read_until = series.lock().read_until;
        if read_until < end {
            // Other processes write a minute shortly after its end.
            let from = (end - MAX_MINUTES as i64 * MINUTE_MS).max(read_until - 2 * MINUTE_MS);
            series.add_others(self.store().minutes(from).await?);
            series.lock().read_until = end;
        }
        Ok(())
    }

    /// Stores the minutes before this time; all of them before the process ends.
    pub async fn save_minutes(&self, until: i64) -> store::Result<()> {
        for record in self.0.series.unsaved(until) {
            let at = record.at;
            self.store().put_minute(record).await?;
            self.0.series.lock().saved_until = at + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
