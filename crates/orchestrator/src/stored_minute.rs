//! The numbers of a minute as JSON, for the store.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolwright_contract::ErrorKind;

use crate::durations::Durations;
use crate::metrics::ToolMetrics;
use crate::series::Minute;

/// The most tools of a stored minute; the others are one row.
const MAX_TOOLS: usize = 200;
/// The name of that row. No tool can have it.
pub const OTHER_TOOLS: &str = "(other tools)";

#[derive(Serialize, Deserialize)]
struct StoredMinute {
    tools: Vec<StoredTool>,
    counts: BTreeMap<String, u64>,
    durations: BTreeMap<String, Durations>,
}

#[derive(Serialize, Deserialize)]
struct StoredTool {
    tool: String,
    version: String,
    calls: u64,
    replays: u64,
    refusals: u64,
    errors: BTreeMap<String, u64>,
    latency: Durations,
}

/// The text of a minute.
pub(crate) fn write(minute: &Minute) -> String {
    let mut rows: Vec<_> = minute.tools.iter().collect();
    rows.sort_by_key(|(_, metrics)| Reverse(metrics.calls + metrics.refusals));
    let rest = rows.split_off(rows.len().min(MAX_TOOLS));
    let mut tools: Vec<StoredTool> =
        rows.into_iter().map(|((tool, version), metrics)| StoredTool::new(tool, version, metrics)).collect();
    if !rest.is_empty() {
        let mut total = ToolMetrics::default();
        rest.into_iter().for_each(|(_, metrics)| total.add(metrics));
        tools.push(StoredTool::new(OTHER_TOOLS, "", &total));
    }
    let stored = StoredMinute { tools, counts: minute.counts.clone(), durations: minute.durations.clone() };
    serde_json::to_string(&stored).unwrap_or_default()
}

/// The minute of a text, without its time.
pub(crate) fn read(text: &str) -> serde_json::Result<Minute> {
    let StoredMinute { tools, counts, durations } = serde_json::from_str(text)?;
    let tools = tools.into_iter().map(StoredTool::into_row).collect();
    Ok(Minute { at: 0, tools, counts, durations })
}

impl StoredTool {
    fn new(tool: &str, version: &str, metrics: &ToolMetrics) -> Self {
        Self {
            tool: tool.to_owned(),
            version: version.to_owned(),
            calls: metrics.calls,
            replays: metrics.replays,
            refusals: metrics.refusals,
            errors: metrics.errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            latency: metrics.latency.clone(),
        }
    }

    fn into_row(self) -> ((String, String), ToolMetrics) {
        let Self { tool, version, calls, replays, refusals, errors, latency } = self;
        // A kind that this version does not know is left out.
        let kind = |(word, count): (String, u64)| Some((ErrorKind::from_word(&word)?.as_str(), count));
        let errors = errors.into_iter().filter_map(kind).collect();
        ((tool, version), ToolMetrics { calls, replays, refusals, errors, latency, ..ToolMetrics::default() })
    }
}
