//! One session: its state, its budgets, its conversation and its calls.

use askama::Template;

use crate::call_list::CallRow;
use crate::layout::Layout;
use crate::parts::{Chip, Code, CsrfField, Notice, Time};

#[derive(Debug, Template)]
#[template(path = "session.html")]
pub struct SessionPage {
    pub layout: Layout,
    pub id: String,
    pub status: Chip,
    pub created: Time,
    pub expires: Time,
    pub facts: Vec<(&'static str, String)>,
    pub notices: Vec<Notice>,
    pub meters: Vec<MeterRow>,
    pub state: Code,
    pub turns: Vec<TranscriptTurn>,
    /// Whether only the end of the conversation is shown.
    pub is_truncated: bool,
    pub calls: Vec<CallRow>,
    pub calls_href: String,
    pub chat_href: Option<String>,
    /// The form that ends it, while it is active.
    pub end: Option<CsrfField>,
}

impl SessionPage {
    fn end_action(&self) -> String {
        format!("/sessions/{}/end", crate::format::url_part(&self.id))
    }
}

/// The used part of an allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterRow {
    pub name: String,
    pub scope: &'static str,
    pub spent: String,
    pub limit: String,
}

/// One turn of the conversation.
#[derive(Debug, Clone)]
pub struct TranscriptTurn {
    pub parts: Vec<TranscriptPart>,
    pub outcome: Option<Chip>,
}

/// An entry of the conversation.
#[derive(Debug, Clone)]
pub struct TranscriptPart {
    /// `user`, `assistant` or `tool`.
    pub role: &'static str,
    pub text: String,
    /// The call, if it is one.
    pub href: Option<String>,
}
