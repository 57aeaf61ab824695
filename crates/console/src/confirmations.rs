//! The confirmation requests that wait for an answer.

use askama::Template;

use crate::layout::Layout;
use crate::parts::{Code, CsrfField, Notice, Pager, Time};

#[derive(Debug, Template)]
#[template(path = "confirmations.html")]
pub struct ConfirmationsPage {
    pub layout: Layout,
    pub notices: Vec<Notice>,
    pub requests: Vec<WaitingRequest>,
    pub pager: Pager,
    /// The reason why this user cannot answer here; empty if they can.
    pub hint: String,
}

/// One confirmation request.
#[derive(Debug, Clone)]
pub struct WaitingRequest {
    pub id: String,
    pub tool: String,
    pub tool_href: String,
    pub version: String,
    pub preview: String,
    pub args: Code,
    /// The arguments in the form that edits them; `None` if they are too long for it.
    pub editable: Option<String>,
    /// The address of the whole request, if its preview was cut.
    pub whole_preview: Option<String>,
    /// The caller.
    pub user: String,
    pub session: String,
    pub session_href: String,
    pub call_href: String,
    pub created: Time,
    pub expires: Time,
    /// When it expires, in milliseconds since 1970, and how long that is.
    pub expires_at: i64,
    pub remaining: String,
    /// The problem with the answer.
    pub error: Option<String>,
    pub csrf: CsrfField,
    pub can_answer: bool,
}

impl WaitingRequest {
    fn action(&self, answer: &str) -> String {
        format!("/confirmations/{}/{answer}", crate::format::url_part(&self.id))
    }
}
