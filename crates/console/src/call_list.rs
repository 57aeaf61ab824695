//! The calls that have ended, newest first.

use askama::Template;

use crate::layout::Layout;
use crate::parts::{Chip, Choice, Pager, Time};

#[derive(Debug, Template)]
#[template(path = "calls.html")]
pub struct CallsPage {
    pub layout: Layout,
    pub filters: CallFilters,
    pub calls: Vec<CallRow>,
    pub pager: Pager,
    /// Whether this is the newest page, on which calls appear as they end.
    pub is_live: bool,
    /// The text of an empty table.
    pub empty: String,
}

/// The filters, as the address has them.
#[derive(Debug, Clone, Default)]
pub struct CallFilters {
    pub tool: String,
    /// The tools that are suggested.
    pub tools: Vec<String>,
    pub outcomes: Vec<Choice>,
    pub events: Vec<Choice>,
    pub times: Vec<Choice>,
    pub session: String,
    /// `None`: this user sees only their own calls.
    pub principal: Option<String>,
    /// The address of the page without filters, if any is set.
    pub clear: Option<String>,
}

/// One call of a list.
#[derive(Debug, Clone)]
pub struct CallRow {
    pub time: Time,
    pub tool: String,
    pub href: String,
    pub outcome: Chip,
    /// The event, unless the call simply ran.
    pub event: Option<Chip>,
    pub duration: String,
    pub user: String,
    pub session: String,
    pub session_href: String,
}
