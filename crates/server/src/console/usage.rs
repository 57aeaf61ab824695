//! `/usage`: calls per minute, their latency and their errors, for all tools or one.

use toolwright_agent::Agent;
use toolwright_console::Page;
use toolwright_console::chart::{BarChart, Line, LineChart, Point};
use toolwright_console::format::{count, duration, percent, url_part, utc_time};
use toolwright_console::parts::Choice;
use toolwright_console::usage::{UsagePage, UsageRow};
use toolwright_orchestrator::metrics::ToolMetrics;
use toolwright_orchestrator::series::Minute;

use super::calls::{text, tool_names};
use super::{layout, page};
use crate::request::{ApiRequest, ApiResult};

const MINUTE_MS: i64 = 60_000;
/// The times to choose from: the value in the address, what people read, minutes, and minutes of one bar.
const SPANS: [(&str, &str, i64, i64); 3] =
    [("1h", "Last hour", 60, 1), ("6h", "Last 6 hours", 360, 6), ("24h", "Last 24 hours", 1440, 24)];

/// The calls of one bar.
struct Bucket {
    at: i64,
    total: ToolMetrics,
}

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [span, tool] = request.query(["span", "tool"])?.map(text);
    let known = SPANS.iter().find(|(value, ..)| Some(*value) == span.as_deref()).unwrap_or(&SPANS[0]);
    let (value, _, minutes, width) = *known;
    let now = request.app.orchestrator.now();
    let end = now - now.rem_euclid(width * MINUTE_MS) + width * MINUTE_MS;
    let from = end - minutes * MINUTE_MS;
    let series = request.app.orchestrator.minutes(from);
    let is_wanted = |name: &str| tool.as_deref().is_none_or(|tool| tool == name);
    let buckets = buckets(&series, from, minutes / width, width * MINUTE_MS, is_wanted);
    let mut total = ToolMetrics::default();
    buckets.iter().for_each(|bucket| total.add(&bucket.total));
    page(&UsagePage {
        layout: layout(&request, Page::Metrics, "Metrics").await?,
        notices: Vec::new(),
        spans: SPANS
            .iter()
            .map(|(value_of, label, ..)| Choice::new(*value_of, *label, Some(value)))
            .collect(),
        tools: tool_names(&request),
        facts: facts(&total, minutes),
        calls: bars("Calls", "Calls", &buckets, |total| total.calls),
        errors: bars("Errors and refusals", "Failed", &buckets, failed),
        latency: latency(&buckets),
        rows: rows(&series, is_wanted),
        agent: request.app.options.agent.as_ref().map(agent_facts).unwrap_or_default(),
        tool: tool.unwrap_or_default(),
    })
}

fn buckets(
    series: &[Minute],
    from: i64,
    number: i64,
    width_ms: i64,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Bucket> {
    let empty = |index| Bucket { at: from + index * width_ms, total: ToolMetrics::default() };
    let mut buckets: Vec<Bucket> = (0..number).map(empty).collect();
    for minute in series {
        let index = usize::try_from((minute.at - from) / width_ms).unwrap_or(usize::MAX);
        let Some(bucket) = buckets.get_mut(index) else { continue };
        let wanted = minute.tools.iter().filter(|((tool, _), _)| is_wanted(tool));
        wanted.for_each(|(_, metrics)| bucket.total.add(metrics));
    }
    buckets
}

/// Calls that ended with an error, refused ones included.
fn failed(metrics: &ToolMetrics) -> u64 {
    metrics.errors.values().sum()
}

fn facts(total: &ToolMetrics, minutes: i64) -> Vec<(&'static str, String)> {
    let ended = total.calls + total.refusals;
    vec![
        ("Calls", count(total.calls)),
        ("Per minute", format!("{:.1}", total.calls as f64 / minutes as f64)),
        ("Failed", percent(failed(total), ended)),
        ("Refused", count(total.refusals)),
        ("Replayed", count(total.replays)),
        ("p50", duration(total.quantile(0.5))),
        ("p99", duration(total.quantile(0.99))),
    ]
}

/// The clock time of a bar, in UTC.
fn label(at: i64) -> String {
    utc_time(at).get(11..16).unwrap_or_default().to_owned()
}

fn bars(title: &str, y_name: &str, buckets: &[Bucket], value: impl Fn(&ToolMetrics) -> u64) -> BarChart {
    let point = |bucket: &Bucket| {
        let value = value(&bucket.total);
        Point { label: label(bucket.at), value: value as f64, text: count(value) }
    };
    BarChart {
        title: title.to_owned(),
        x_name: "Time (UTC)".to_owned(),
        y_name: y_name.to_owned(),
        points: buckets.iter().map(point).collect(),
    }
}

fn latency(buckets: &[Bucket]) -> LineChart {
    let line = |(name, share): (&str, f64)| {
        let value = |bucket: &Bucket| (bucket.total.calls > 0).then(|| bucket.total.quantile(share));
        let values: Vec<Option<f64>> = buckets.iter().map(value).collect();
        let texts = values.iter().map(|value| value.map_or("–".to_owned(), duration)).collect();
        Line { name: name.to_owned(), values, texts }
    };
    LineChart {
        title: "Latency".to_owned(),
        x_name: "Time (UTC)".to_owned(),
        labels: buckets.iter().map(|bucket| label(bucket.at)).collect(),
        lines: [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)].map(line).into(),
    }
}

/// The tools, the most called ones first.
fn rows(series: &[Minute], is_wanted: impl Fn(&str) -> bool) -> Vec<UsageRow> {
    let mut totals = std::collections::BTreeMap::<&(String, String), ToolMetrics>::new();
    for (tool, metrics) in
        series.iter().flat_map(|minute| &minute.tools).filter(|((tool, _), _)| is_wanted(tool))
    {
        totals.entry(tool).or_default().add(metrics);
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by_key(|(_, metrics)| std::cmp::Reverse(metrics.calls + metrics.refusals));
    let row = |((tool, version), metrics): (&(String, String), ToolMetrics)| UsageRow {
        href: format!("/calls?tool={}", url_part(tool)),
        tool: tool.clone(),
        version: version.clone(),
        calls: count(metrics.calls),
        errors: count(failed(&metrics)),
        refusals: count(metrics.refusals),
        replays: count(metrics.replays),
        p50: duration(metrics.quantile(0.5)),
        p90: duration(metrics.quantile(0.9)),
        p99: duration(metrics.quantile(0.99)),
    };
    totals.into_iter().take(500).map(row).collect()
}

fn agent_facts(agent: &Agent) -> Vec<(&'static str, String)> {
    let metrics = agent.metrics();
    vec![
        ("Model", metrics.model),
        ("Turns", count(metrics.turns.values().sum())),
        ("Requests to the model", count(metrics.steps)),
        ("Failed requests", count(metrics.errors.values().sum())),
        ("Input tokens", count(metrics.tokens.input_tokens)),
        ("Output tokens", count(metrics.tokens.output_tokens)),
    ]
}
