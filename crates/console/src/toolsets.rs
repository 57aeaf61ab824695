//! The toolsets that the store keeps, and the difference between two of them.

use askama::Template;

use crate::diff::Diff;
use crate::layout::Layout;
use crate::parts::{Choice, Time};

#[derive(Debug, Template)]
#[template(path = "toolsets.html")]
pub struct ToolsetsPage {
    pub layout: Layout,
    pub rows: Vec<ToolsetRow>,
    pub from: Vec<Choice>,
    pub to: Vec<Choice>,
    pub comparison: Option<Comparison>,
}

#[derive(Debug)]
pub struct ToolsetRow {
    pub id: String,
    pub is_current: bool,
    pub tools: String,
    pub size: String,
    pub sessions: u64,
    pub stored_at: Time,
    pub used_at: Time,
}

/// The changes from one toolset to another.
#[derive(Debug, Default)]
pub struct Comparison {
    pub title: String,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<ChangedTool>,
    /// Tools that differ, of which only the names are shown.
    pub more_changed: Vec<String>,
    /// How many were added, removed, changed and left as they were.
    pub counts: [String; 4],
}

/// A tool of both toolsets that differs.
#[derive(Debug)]
pub struct ChangedTool {
    pub id: String,
    pub versions: String,
    pub diffs: Vec<Diff>,
}
