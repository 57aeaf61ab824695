//! The charts of `/usage`: minutes combined into bars, and their charts.

use std::collections::BTreeMap;

use toolwright_agent::series::{FIRST_AUDIO, FIRST_TOKEN, INPUT_TOKENS, OUTPUT_TOKENS, VOICE_CALL};
use toolwright_console::chart::{BarChart, Line, LineChart, Point};
use toolwright_console::format::{count, duration, utc_time};
use toolwright_console::usage::ModelChart;
use toolwright_orchestrator::durations::Durations;
use toolwright_orchestrator::metrics::ToolMetrics;
use toolwright_orchestrator::series::Minute;

const TIME: &str = "Time (UTC)";

/// The numbers of one bar.
pub(super) struct Bucket {
    at: i64,
    width_ms: i64,
    pub total: ToolMetrics,
    counts: BTreeMap<String, u64>,
    durations: BTreeMap<String, Durations>,
}

impl Bucket {
    /// A row of empty bars.
    pub fn row(from: i64, number: i64, width_ms: i64) -> Vec<Self> {
        let empty = |index| Self {
            at: from + index * width_ms,
            width_ms,
            total: ToolMetrics::default(),
            counts: BTreeMap::new(),
            durations: BTreeMap::new(),
        };
        (0..number).map(empty).collect()
    }

    /// The start of the bar as a clock time in UTC.
    fn label(&self) -> String {
        utc_time(self.at).get(11..16).unwrap_or_default().to_owned()
    }

    fn durations(&self, name: &str) -> Option<&Durations> {
        self.durations.get(name)
    }
}

/// Adds minutes to their bars, for the tools that `is_wanted` accepts.
pub(super) fn fill(buckets: &mut [Bucket], series: &[Minute], is_wanted: impl Fn(&str, &str) -> bool) {
    let Some((from, width_ms)) = buckets.first().map(|first| (first.at, first.width_ms)) else { return };
    for minute in series {
        let index = usize::try_from((minute.at - from) / width_ms).unwrap_or(usize::MAX);
        let Some(bucket) = buckets.get_mut(index) else { continue };
        let wanted = minute.tools.iter().filter(|((tool, version), _)| is_wanted(tool, version));
        wanted.for_each(|(_, metrics)| bucket.total.add(metrics));
        for (name, count) in &minute.counts {
            *bucket.counts.entry(name.clone()).or_default() += count;
        }
        for (name, durations) in &minute.durations {
            bucket.durations.entry(name.clone()).or_default().merge(durations);
        }
    }
}

/// Calls that ended with an error, refused ones included.
pub(super) fn errors_and_refusals(metrics: &ToolMetrics) -> u64 {
    metrics.errors.values().sum()
}

/// Calls that ran and ended with an error.
pub(super) fn failed(metrics: &ToolMetrics) -> u64 {
    errors_and_refusals(metrics).saturating_sub(metrics.refusals)
}

pub(super) fn bars(
    title: &str,
    y_name: &str,
    buckets: &[Bucket],
    value: impl Fn(&ToolMetrics) -> u64,
) -> BarChart {
    let point = |bucket: &Bucket| {
        let value = value(&bucket.total);
        Point { label: bucket.label(), value: value as f64, text: count(value) }
    };
    BarChart {
        title: title.to_owned(),
        x_name: TIME.to_owned(),
        y_name: y_name.to_owned(),
        points: buckets.iter().map(point).collect(),
    }
}

pub(super) fn latency(buckets: &[Bucket]) -> LineChart {
    let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
    quantiles("Latency", buckets, &shares, |bucket| Some(&bucket.total.latency))
}

/// Lines with these quantiles.
fn quantiles<'b>(
    title: &str,
    buckets: &'b [Bucket],
    shares: &[(&str, f64)],
    durations: impl Fn(&'b Bucket) -> Option<&'b Durations>,
) -> LineChart {
    let value = |share: f64| {
        let durations = &durations;
        move |bucket: &'b Bucket| {
            durations(bucket).filter(|all| all.count() > 0).map(|all| all.quantile(share))
        }
    };
    let line = |(name, share): &(&str, f64)| Line::new(name, buckets.iter().map(value(*share)), duration);
    chart(title, buckets, shares.iter().map(line).collect())
}

fn chart(title: &str, buckets: &[Bucket], lines: Vec<Line>) -> LineChart {
    LineChart {
        title: title.to_owned(),
        x_name: TIME.to_owned(),
        labels: buckets.iter().map(Bucket::label).collect(),
        lines,
    }
}

/// Charts of the models: tokens, and the delay of their answers.
pub(super) fn models(buckets: &[Bucket], has_voice: bool) -> Vec<ModelChart> {
    const SHARES: [(&str, f64); 2] = [("p50", 0.5), ("p90", 0.9)];
    let was_measured = |name: &str| buckets.iter().any(|bucket| bucket.durations(name).is_some());
    let times = |title, name: &'static str| {
        was_measured(name).then(|| quantiles(title, buckets, &SHARES, |bucket| bucket.durations(name)))
    };
    let was_counted = buckets.iter().any(|bucket| !bucket.counts.is_empty());
    let no_request = "No model was asked in this time.";
    let mut charts = vec![
        ModelChart {
            title: "Tokens",
            note: "of the text model",
            chart: was_counted.then(|| tokens(buckets)),
            empty: no_request,
        },
        ModelChart {
            title: "First token",
            note: "from the request to the text model",
            chart: times("First token", FIRST_TOKEN),
            empty: no_request,
        },
    ];
    if has_voice || was_measured(FIRST_AUDIO) || was_measured(VOICE_CALL) {
        let no_speech = "No speech in this period.";
        charts.push(ModelChart {
            title: "Voice: first audio",
            note: "from the end of the user's speech",
            chart: times("Voice: first audio", FIRST_AUDIO),
            empty: no_speech,
        });
        charts.push(ModelChart {
            title: "Voice: calls",
            note: "from a call to its result",
            chart: times("Voice: calls", VOICE_CALL),
            empty: no_speech,
        });
    }
    charts
}

fn tokens(buckets: &[Bucket]) -> LineChart {
    let line = |(label, name): (&str, &str)| {
        let value = |bucket: &Bucket| bucket.counts.get(name).map(|tokens| *tokens as f64);
        Line::new(label, buckets.iter().map(value), |tokens| count(tokens as u64))
    };
    let lines = [("input", INPUT_TOKENS), ("output", OUTPUT_TOKENS)].map(line);
    chart("Tokens", buckets, lines.into())
}
