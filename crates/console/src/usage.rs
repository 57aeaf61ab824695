//! Metrics: calls, latency and errors, over time and for each tool.

use askama::Template;

use crate::chart::{BarChart, LineChart};
use crate::layout::Layout;
use crate::parts::{Choice, Notice};

#[derive(Debug, Template)]
#[template(path = "usage.html")]
pub struct UsagePage {
    pub layout: Layout,
    pub notices: Vec<Notice>,
    pub spans: Vec<Choice>,
    pub tool: String,
    pub tools: Vec<String>,
    pub facts: Vec<(&'static str, String)>,
    pub calls: BarChart,
    pub latency: LineChart,
    pub errors: BarChart,
    /// The versions of the chosen tool.
    pub versions: Vec<Choice>,
    pub rows: Vec<UsageRow>,
    pub models: Vec<ModelChart>,
    pub agent: Vec<(&'static str, String)>,
}

/// A chart about a model, or the text in its place.
#[derive(Debug)]
pub struct ModelChart {
    pub title: &'static str,
    pub note: &'static str,
    pub chart: Option<LineChart>,
    pub empty: &'static str,
}

/// The numbers of one tool and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub tool: String,
    /// The address of its calls; empty for a row of several tools.
    pub href: String,
    pub version: String,
    /// The charts of this version.
    pub version_href: String,
    pub calls: String,
    pub errors: String,
    pub refusals: String,
    pub replays: String,
    pub p50: String,
    pub p90: String,
    pub p99: String,
}
