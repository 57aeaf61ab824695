//! The sessions, newest first.

use askama::Template;

use crate::layout::Layout;
use crate::parts::{Chip, Pager, Time};

#[derive(Debug, Template)]
#[template(path = "sessions.html")]
pub struct SessionsPage {
    pub layout: Layout,
    pub sessions: Vec<SessionRow>,
    pub pager: Pager,
}

/// One session of the list.
#[derive(Debug, Clone)]
pub struct SessionRow {
    pub id: String,
    pub href: String,
    pub status: Chip,
    pub mode: String,
    pub user: String,
    pub client: String,
    pub turns: String,
    pub toolset: String,
    pub created: Time,
}
