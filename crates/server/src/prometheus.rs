//! `/metrics`: the counters in Prometheus text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolwright_agent::{AgentMetrics, FIRST_TOKEN_BOUNDS_MS};
use toolwright_orchestrator::metrics::{DURATION_BOUNDS_US, ToolMetrics};

use crate::app::App;
use crate::body;
use crate::request::{ApiRequest, ApiResult};
use crate::voice_metrics;

/// Name, help and value.
type Counter = (&'static str, &'static str, fn(&ToolMetrics) -> u64);

/// The counters of a tool.
const COUNTERS: [Counter; 6] = [
    ("toolwright_calls_total", "Calls that ran.", |tool| tool.calls),
    ("toolwright_replays_total", "Calls answered from their record.", |tool| tool.replays),
    ("toolwright_refusals_total", "Calls that a gate refused.", |tool| tool.refusals),
    ("toolwright_overruns_total", "Calls that took longer than the tool's latency budget.", |tool| {
        tool.overruns
    }),
    (
        "toolwright_soft_limit_overruns_total",
        "Retrieval calls that took longer than the soft limit of their mode.",
        |tool| tool.soft_limit_overruns,
    ),
    ("toolwright_retries_total", "Calls that were retried.", |tool| tool.retries),
];

pub(crate) async fn metrics(request: ApiRequest<'_>) -> ApiResult {
    Ok(body::response("text/plain; version=0.0.4; charset=utf-8", render(request.app)))
}

fn render(app: &App) -> String {
    let tools = app.orchestrator.metrics();
    let mut page = Page(String::with_capacity(4096));
    for (name, help, value) in COUNTERS {
        page.head(name, "counter", help);
        tools.iter().for_each(|tool| page.sample(name, tool, "", value(tool)));
    }
    page.head("toolwright_errors_total", "counter", "Errors by type, refusals included.");
    for tool in &tools {
        for (kind, count) in &tool.errors {
            let label = format!(",type=\"{kind}\"");
            page.sample("toolwright_errors_total", tool, &label, count);
        }
    }
    page.latency(&tools);
    if let Some(agent) = &app.options.agent {
        page.agent(&agent.metrics());
    }
    if let Some(voice) = &app.options.voice {
        voice_metrics::write(&mut page, &voice.metrics());
    }
    page.head("toolwright_http_requests_total", "counter", "Responses, by class of status.");
    for (class, count) in app.counters.responses() {
        page.line(format_args!("toolwright_http_requests_total{{class=\"{class}\"}} {count}"));
    }
    let handlers = app.orchestrator.capacity_use();
    let load = |gauge: &AtomicUsize| gauge.load(Ordering::Relaxed);
    let gauges = [
        ("toolwright_handlers_running", "Calls whose handler holds a seat.", handlers.running),
        ("toolwright_handlers_waiting", "Calls that wait for a seat.", handlers.waiting),
        ("toolwright_http_requests_running", "Requests that are running.", load(&app.counters.running)),
        ("toolwright_http_connections", "Open connections.", load(&app.counters.connections)),
    ];
    for (name, help, value) in gauges {
        page.head(name, "gauge", help);
        page.line(format_args!("{name} {value}"));
    }
    page.0
}

pub(crate) struct Page(String);

impl Page {
    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a `String` does not fail.
        let _ = writeln!(self.0, "{line}");
    }

    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// Tool ids and versions need no escaping; the orchestrator counts unknown tools under one name.
    fn sample(&mut self, name: &str, tool: &ToolMetrics, more: &str, value: impl std::fmt::Display) {
        let ToolMetrics { tool, version, .. } = tool;
        self.line(format_args!("{name}{{tool=\"{tool}\",version=\"{version}\"{more}}} {value}"));
    }

    fn agent(&mut self, agent: &AgentMetrics) {
        let AgentMetrics { turns, steps, errors, tokens, first_token, first_token_us_sum, .. } = agent;
        let escape = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"");
        let labels = format!("provider=\"{}\",model=\"{}\"", escape(&agent.provider), escape(&agent.model));
        self.head("toolwright_agent_turns_total", "counter", "Runs of turns, by outcome.");
        for (outcome, count) in turns {
            self.line(format_args!("toolwright_agent_turns_total{{{labels},outcome=\"{outcome}\"}} {count}"));
        }
        self.head("toolwright_agent_steps_total", "counter", "Requests to the model.");
        self.line(format_args!("toolwright_agent_steps_total{{{labels}}} {steps}"));
        self.head("toolwright_agent_errors_total", "counter", "Failed requests to the model, by kind.");
        for (kind, count) in errors {
            self.line(format_args!("toolwright_agent_errors_total{{{labels},kind=\"{kind}\"}} {count}"));
        }
        self.head("toolwright_agent_tokens_total", "counter", "Tokens of the model.");
        for (kind, count) in [
            ("input", tokens.input_tokens),
            ("output", tokens.output_tokens),
            ("cached", tokens.cached_tokens),
            ("reasoning", tokens.reasoning_tokens),
        ] {
            self.line(format_args!("toolwright_agent_tokens_total{{{labels},kind=\"{kind}\"}} {count}"));
        }
        let name = "toolwright_agent_first_token_seconds";
        self.head(name, "histogram", "Time to the first token of a response.");
        let mut below = 0;
        for (bound, count) in FIRST_TOKEN_BOUNDS_MS.iter().zip(first_token) {
            below += count;
            let bound =
                if *bound == u64::MAX { "+Inf".to_owned() } else { (*bound as f64 / 1e3).to_string() };
            self.line(format_args!("{name}_bucket{{{labels},le=\"{bound}\"}} {below}"));
        }
        self.line(format_args!("{name}_sum{{{labels}}} {}", *first_token_us_sum as f64 / 1e6));
        self.line(format_args!("{name}_count{{{labels}}} {below}"));
    }

    fn latency(&mut self, tools: &[ToolMetrics]) {
        let name = "toolwright_call_duration_seconds";
        self.head(name, "histogram", "Duration of calls that ran.");
        for tool in tools {
            let mut below = 0;
            for (bound, count) in DURATION_BOUNDS_US.iter().zip(&tool.durations) {
                below += count;
                let label = format!(",le=\"{}\"", *bound as f64 / 1e6);
                self.sample(&format!("{name}_bucket"), tool, &label, below);
            }
            let all: u64 = tool.durations.iter().sum();
            self.sample(&format!("{name}_bucket"), tool, ",le=\"+Inf\"", all);
            self.sample(&format!("{name}_sum"), tool, "", tool.duration_sum_us as f64 / 1e6);
            self.sample(&format!("{name}_count"), tool, "", all);
        }
    }
}
