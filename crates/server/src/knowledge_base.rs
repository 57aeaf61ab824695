//! The knowledge base as the console sees it. The caller of the server provides it: nothing here knows how it is
//! stored.

/// The knowledge base. All methods block.
pub trait KnowledgeBase: Send + Sync + std::fmt::Debug {
    /// Its contents: names and numbers.
    fn facts(&self) -> Result<Vec<(String, String)>, String>;

    /// The relevant records, best first.
    fn search(&self, query: &KbQuery) -> Result<KbResults, String>;

    /// The record with this id, if this user may read it.
    fn record(&self, id: &str, user: &str) -> Result<Option<KbRecord>, String>;

    /// Adds the records of a text. A text that was added before with the same name is replaced.
    fn add(&self, text: &KbText) -> Result<KbAdded, KbAddError>;
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KbQuery {
    pub text: String,
    /// `studio`, `personal` or `public`.
    pub namespace: String,
    /// The owner of personal records.
    pub user: String,
    pub limit: usize,
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct KbResults {
    pub hits: Vec<KbHit>,
    /// The search method: keywords, or keywords and meaning.
    pub retrieval: String,
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct KbHit {
    pub id: String,
    pub kind: String,
    pub title: String,
    pub snippet: String,
    /// From 0 to 1.
    pub score: f32,
}

/// A whole record.
#[derive(Debug, Clone, PartialEq)]
pub struct KbRecord {
    pub id: String,
    pub kind: String,
    pub title: String,
    pub text: String,
    pub namespace: String,
    pub tags: Vec<String>,
    pub source_type: String,
    pub last_updated: String,
    pub url: Option<String>,
    pub metadata: serde_json::Value,
}

/// A text to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KbText {
    /// The name of its file; the extension is its format.
    pub name: String,
    pub text: String,
    pub namespace: String,
    /// The owner of personal records.
    pub user: String,
}

/// The outcome of adding a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KbAdded {
    pub records: usize,
    /// Lines that could not be read, with the reason.
    pub problems: Vec<String>,
}

/// Why a text was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KbAddError {
    /// The text is invalid; the message is for its sender.
    Invalid(String),
    /// The store failed; the message is for the log.
    Failed(String),
}
