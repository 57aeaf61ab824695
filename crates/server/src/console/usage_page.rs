//! `/usage`: calls per minute, their latency and their errors, for all tools or one; tokens and voice.

use std::collections::{BTreeMap, BTreeSet};

use toolwright_agent::Agent;
use toolwright_console::Page;
use toolwright_console::format::{count, duration, percent, url_part};
use toolwright_console::parts::Choice;
use toolwright_console::usage::{UsagePage, UsageRow};
use toolwright_orchestrator::metrics::ToolMetrics;
use toolwright_orchestrator::series::Minute;
use toolwright_orchestrator::stored_minute::OTHER_TOOLS;

use super::calls_page::{text, tool_names};
use super::usage_charts::{Bucket, bars, errors_and_refusals, failed, fill, latency, models};
use super::{layout, page};
use crate::request::{ApiRequest, ApiResult};

const MINUTE_MS: i64 = 60_000;
/// The most rows of the table.
const MAX_ROWS: usize = 500;
/// The times to choose from: the value in the address, what people read, minutes, and minutes of one bar.
const SPANS: [(&str, &str, i64, i64); 3] =
    [("1h", "Last hour", 60, 1), ("6h", "Last 6 hours", 360, 6), ("24h", "Last 24 hours", 1440, 24)];

/// The query of the address.
struct Choices {
    span: &'static str,
    tool: Option<String>,
    version: Option<String>,
}

impl Choices {
    fn admit(&self, tool: &str, version: &str) -> bool {
        self.tool.as_deref().is_none_or(|wanted| wanted == tool)
            && self.version.as_deref().is_none_or(|wanted| wanted == version)
    }
}

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [span, tool, version] = request.query(["span", "tool", "version"])?.map(text);
    let known = SPANS.iter().find(|(value, ..)| Some(*value) == span.as_deref()).unwrap_or(&SPANS[0]);
    let (span, _, minutes, width) = *known;
    let choices = Choices { span, version: version.filter(|_| tool.is_some()), tool };
    let now = request.app.orchestrator.now();
    let end = now - now.rem_euclid(width * MINUTE_MS) + width * MINUTE_MS;
    let from = end - minutes * MINUTE_MS;
    let series = request.app.orchestrator.minutes(from);
    let mut buckets = Bucket::row(from, minutes / width, width * MINUTE_MS);
    fill(&mut buckets, &series, |tool, version| choices.admit(tool, version));
    let mut total = ToolMetrics::default();
    buckets.iter().for_each(|bucket| total.add(&bucket.total));
    let agent = request.app.options.agent.as_ref();
    page(&UsagePage {
        layout: layout(&request, Page::Metrics, "Metrics").await?,
        notices: Vec::new(),
        spans: SPANS.iter().map(|(value, label, ..)| Choice::new(*value, *label, Some(span))).collect(),
        tools: tool_names(&request),
        versions: versions(&series, &choices),
        facts: facts(&total, minutes),
        calls: bars("Calls", "Calls", &buckets, |total| total.calls),
        errors: bars("Errors and refusals", "Failed", &buckets, errors_and_refusals),
        latency: latency(&buckets),
        rows: rows(&series, &choices),
        // They are not counted by tool.
        models: match choices.tool {
            None => models(&buckets, request.app.options.voice.is_some()),
            Some(_) => Vec::new(),
        },
        agent: agent.filter(|_| choices.tool.is_none()).map(agent_facts).unwrap_or_default(),
        tool: choices.tool.unwrap_or_default(),
    })
}

fn facts(total: &ToolMetrics, minutes: i64) -> Vec<(&'static str, String)> {
    vec![
        ("Calls", count(total.calls)),
        ("Per minute", format!("{:.1}", total.calls as f64 / minutes as f64)),
        ("Failed", percent(failed(total), total.calls)),
        ("Refused", count(total.refusals)),
        ("Replayed", count(total.replays)),
        ("p50", duration(total.quantile(0.5))),
        ("p99", duration(total.quantile(0.99))),
    ]
}

/// The versions of the chosen tool that were called.
fn versions(series: &[Minute], choices: &Choices) -> Vec<Choice> {
    let called = series.iter().flat_map(|minute| minute.tools.keys());
    let own = called.filter(|(tool, _)| Some(tool.as_str()) == choices.tool.as_deref());
    let versions: BTreeSet<&str> = own.map(|(_, version)| version.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    Choice::words("All versions", &versions, choices.version.as_deref())
}

/// The tools, the most called ones first.
fn rows(series: &[Minute], choices: &Choices) -> Vec<UsageRow> {
    let mut totals = BTreeMap::<&(String, String), ToolMetrics>::new();
    let all = series.iter().flat_map(|minute| &minute.tools);
    for (tool, metrics) in all.filter(|((tool, version), _)| choices.admit(tool, version)) {
        totals.entry(tool).or_default().add(metrics);
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by_key(|(_, metrics)| std::cmp::Reverse(metrics.calls + metrics.refusals));
    let largest = totals.iter().take(MAX_ROWS);
    largest.map(|((tool, version), metrics)| row(choices.span, tool, version, metrics)).collect()
}

fn row(span: &str, tool: &str, version: &str, metrics: &ToolMetrics) -> UsageRow {
    let link = |address: String| if tool == OTHER_TOOLS { String::new() } else { address };
    UsageRow {
        href: link(format!("/calls?tool={}", url_part(tool))),
        version_href: link(format!(
            "/usage?span={span}&tool={}&version={}",
            url_part(tool),
            url_part(version)
        )),
        tool: tool.to_owned(),
        version: version.to_owned(),
        calls: count(metrics.calls),
        errors: count(failed(metrics)),
        refusals: count(metrics.refusals),
        replays: count(metrics.replays),
        p50: latency_text(metrics, 0.5),
        p90: latency_text(metrics, 0.9),
        p99: latency_text(metrics, 0.99),
    }
}

fn latency_text(metrics: &ToolMetrics, share: f64) -> String {
    if metrics.calls == 0 { "–".to_owned() } else { duration(metrics.quantile(share)) }
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
