//! The first page: status, problems with their fixes, and how to connect.

use std::hash::{DefaultHasher, Hash, Hasher};

use askama::Template;

use crate::call_list::CallRow;
use crate::layout::Layout;
use crate::parts::{Chip, Notice, Words};
use crate::recipe::Recipe;

#[derive(Debug, Template)]
#[template(path = "home.html")]
pub struct HomePage {
    pub layout: Layout,
    /// `Everything is running`, or the failing component.
    pub headline: String,
    pub subline: String,
    pub notices: Vec<Notice>,
    /// Findings of the last build, when the tools are watched.
    pub findings: Vec<Finding>,
    /// The tools are watched: the page updates itself.
    pub is_watching: bool,
    pub facts: Vec<StatusRow>,
    /// The checks of the setup.
    pub checks: Vec<CheckRow>,
    pub recipes: Vec<Recipe>,
    /// The last calls that this user may see.
    pub calls: Vec<CallRow>,
}

/// One component and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRow {
    pub name: String,
    pub value: String,
    pub note: String,
}

/// A problem that the build has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub is_error: bool,
    pub code: String,
    pub place: String,
    pub message: Words,
    pub help: Option<Words>,
    pub source: Option<String>,
}

/// A check of the setup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRow {
    pub name: String,
    pub state: Chip,
    pub message: Words,
    pub help: Option<Words>,
}

impl HomePage {
    fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_error)
    }

    /// A hash that changes when the page should be reloaded.
    fn state(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.layout.toolset.hash(&mut hasher);
        self.findings.iter().for_each(|finding| (&finding.place, &finding.message.0).hash(&mut hasher));
        self.checks.is_empty().hash(&mut hasher);
        hasher.finish().to_string()
    }
}

impl StatusRow {
    pub fn new(name: &str, value: impl Into<String>, note: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into(), note: note.into() }
    }
}
