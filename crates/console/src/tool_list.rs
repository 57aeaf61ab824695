//! The list of tools: searched, filtered and paged on the server.

use askama::Template;

use crate::chart::Sparkline;
use crate::format::url_part;
use crate::layout::Layout;
use crate::parts::{Chip, Choice, Pager, Tone};

#[derive(Debug, Template)]
#[template(path = "tools.html")]
pub struct ToolsPage {
    pub layout: Layout,
    pub subline: String,
    /// The words that are searched for.
    pub query: String,
    pub categories: Vec<Choice>,
    pub effects: Vec<Choice>,
    pub modes: Vec<Choice>,
    pub confirmations: Vec<Choice>,
    /// A filter or a search is set.
    pub is_filtered: bool,
    pub rows: Vec<ToolRow>,
    pub pager: Pager,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolRow {
    pub id: String,
    pub summary: String,
    pub category: String,
    pub effects: String,
    pub asks_first: bool,
    pub modes: String,
    pub version: String,
    pub budget: String,
    pub health: Health,
}

/// The calls of a tool in the last day.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Health {
    pub calls: String,
    pub errors: String,
    pub p95: String,
    pub is_over_budget: bool,
    pub sparkline: Option<Sparkline>,
}

impl ToolRow {
    fn href(&self) -> String {
        tool_path(&self.id)
    }

    fn category_chip(&self) -> Chip {
        category_chip(&self.category)
    }
}

/// The address of a tool's page.
pub fn tool_path(id: &str) -> String {
    format!("/tools/{}", url_part(id))
}

pub(crate) fn category_chip(category: &str) -> Chip {
    let tone = match category {
        "retrieval" => Tone::Info,
        "action" => Tone::Warn,
        _ => Tone::Plain,
    };
    Chip::new(tone, category)
}
