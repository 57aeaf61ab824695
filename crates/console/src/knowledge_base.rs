//! The knowledge base: search, records, and texts that are added.

use askama::Template;

use crate::layout::Layout;
use crate::parts::{Chip, Choice, Code, CsrfField, Notice};

#[derive(Debug, Template)]
#[template(path = "knowledge_base.html")]
pub struct KnowledgeBasePage {
    pub layout: Layout,
    pub notices: Vec<Notice>,
    pub facts: Vec<(String, String)>,
    pub query: String,
    pub namespaces: Vec<Choice>,
    /// `None` before a search.
    pub results: Option<Vec<SearchResult>>,
    /// The duration of the search, and its method.
    pub summary: String,
    /// The form to add a text, if the user may add one.
    pub add: Option<AddText>,
}

/// One record that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    pub id: String,
    pub href: String,
    pub title: String,
    pub kind: String,
    pub snippet: String,
    /// From 0 to 1.
    pub score: String,
    /// The same in percent, for a bar.
    pub share: u32,
}

/// A text to be added, as the form has it.
#[derive(Debug, Clone)]
pub struct AddText {
    pub csrf: CsrfField,
    pub name: String,
    pub text: String,
    pub namespaces: Vec<Choice>,
    pub error: Option<String>,
}

/// One record.
#[derive(Debug, Template)]
#[template(path = "record.html")]
pub struct RecordPage {
    pub layout: Layout,
    pub id: String,
    pub title: String,
    pub chips: Vec<Chip>,
    pub facts: Vec<(&'static str, String)>,
    pub text: String,
    pub metadata: Option<Code>,
}
