//! The audit: its entries, and whether its chain is intact.

use askama::Template;

use crate::layout::Layout;
use crate::parts::{Chip, Choice, CsrfField, Notice, Pager, Time};

#[derive(Debug, Template)]
#[template(path = "audit.html")]
pub struct AuditPage {
    pub layout: Layout,
    /// The result of the last verification.
    pub verified: Option<Notice>,
    /// Whether a verification runs: the page follows it.
    pub is_verifying: bool,
    /// The address of the form that verifies, with the same filters.
    pub verify: String,
    /// The heads to save elsewhere, as lines.
    pub heads: Option<crate::parts::Code>,
    pub csrf: CsrfField,
    pub filters: AuditFilters,
    pub entries: Vec<AuditEntryRow>,
    pub pager: Pager,
    /// The address of the export with the same filters.
    pub export: String,
}

/// The filters, as the address has them.
#[derive(Debug, Clone, Default)]
pub struct AuditFilters {
    pub event: String,
    pub tool: String,
    pub outcome: String,
    pub session: String,
    pub principal: String,
    pub times: Vec<Choice>,
    pub clear: Option<String>,
}

/// One entry.
#[derive(Debug, Clone)]
pub struct AuditEntryRow {
    pub number: u64,
    pub time: Time,
    pub event: String,
    pub tool: String,
    pub outcome: Chip,
    pub user: String,
    pub session: String,
    pub href: String,
    pub duration: String,
    pub more: String,
}
