//! Pages of the audit, newest first: which entries, and the keys by which a store finds them.

use super::records::AuditEntry;
use super::{Error, Result};

/// The most entries that one page reads to find matches. A page that reaches this limit ends there and says where the
/// next one begins.
pub const MAX_SCANNED: usize = 16_384;

/// The events that are calls; the others are answers to confirmation requests, entries of handlers, and gaps.
pub const CALL_EVENTS: [&str; 5] = ["called", "refused", "replayed", "described", "queued"];

/// The value of [`AuditFilter::outcome`] for every error.
pub const ANY_ERROR: &str = "error";

/// Which entries. Every condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only [`CALL_EVENTS`].
    pub calls_only: bool,
    pub event: Option<String>,
    pub tool: Option<String>,
    /// `ok`, an error's type, or [`ANY_ERROR`].
    pub outcome: Option<String>,
    pub session: Option<String>,
    /// The key of a principal.
    pub principal: Option<String>,
    pub org: Option<String>,
    pub client: Option<String>,
    /// The name of the person who has answered the confirmation request.
    pub approver: Option<String>,
    /// Only those whose arguments an approver has changed.
    pub edited: bool,
    /// An execution of `session`, with its nested calls.
    pub execution: Option<String>,
    /// The half-open time range `from..until`, in milliseconds since 1970.
    pub from: Option<i64>,
    pub until: Option<i64>,
}

/// One page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    pub filter: AuditFilter,
    /// Only entries before the one with this number.
    pub before: Option<u64>,
    pub limit: usize,
}

/// The entries of a page, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditPage {
    pub entries: Vec<NumberedEntry>,
    /// The next page is before this number; `None`: there is nothing more. A page may have fewer entries than its
    /// limit, or none, and be followed by others: see [`MAX_SCANNED`].
    pub next: Option<u64>,
}

/// An entry and its number in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberedEntry {
    pub number: u64,
    pub entry: AuditEntry,
}

impl NumberedEntry {
    /// Parses the text of an entry.
    pub(super) fn parse(number: u64, text: &str) -> Result<Self> {
        let entry = serde_json::from_str(text)
            .map_err(|cause| Error::Corrupt(format!("entry {number} of the audit: {cause}")))?;
        Ok(Self { number, entry })
    }
}

impl AuditFilter {
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        let outcome = match self.outcome.as_deref() {
            None => true,
            Some(ANY_ERROR) => is_error(entry),
            Some(outcome) => entry.outcome == outcome,
        };
        let principal = self.principal.as_ref();
        (!self.calls_only || is_call(entry))
            && outcome
            && is(&self.event, &entry.event)
            && is(&self.tool, &entry.tool)
            && is(&self.session, &entry.session)
            && is(&self.client, &entry.client_id)
            && (self.org.is_none() || self.org == entry.org)
            && self.approver.as_deref().is_none_or(|wanted| entry.approver_id() == Some(wanted))
            && (!self.edited || entry.is_edited())
            && principal.is_none_or(|wanted| entry.principal_key().as_ref() == Some(wanted))
            && self.execution.as_ref().is_none_or(|root| is_within(entry, root))
            && self.from.is_none_or(|from| entry.at >= from)
            && self.until.is_none_or(|until| entry.at < until)
    }

    /// The keys that every matching entry has.
    pub(super) fn terms(&self) -> Vec<u64> {
        let Self { event, tool, outcome, session, principal, execution, org, client, approver, .. } = self;
        let single = |kind, value: &Option<String>| value.as_ref().map(|value| term(kind, &[value]));
        let pair = tool.as_ref().zip(outcome.as_ref());
        let of_execution = session.as_ref().zip(execution.as_ref());
        let terms = [
            single('v', event),
            single('t', tool),
            single('o', outcome),
            single('s', session),
            single('p', principal),
            single('g', org),
            single('k', client),
            single('a', approver),
            self.edited.then(|| term('e', &[])),
            pair.map(|(tool, outcome)| term('c', &[tool, outcome])),
            of_execution.map(|(session, execution)| term('x', &[session, execution])),
        ];
        terms.into_iter().flatten().collect()
    }
}

/// The keys of an entry, under which it is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditKeys {
    pub at: i64,
    pub terms: Vec<u64>,
}

impl AuditKeys {
    pub fn new(entry: &AuditEntry) -> Self {
        let AuditEntry { at, event, session, tool, execution_id, outcome, parent, client_id, .. } = entry;
        let mut terms = Vec::with_capacity(14);
        terms.extend([
            term('v', &[event]),
            term('t', &[tool]),
            term('o', &[outcome]),
            term('s', &[session]),
            term('c', &[tool, outcome]),
            term('x', &[session, execution_id]),
            term('k', &[client_id]),
        ]);
        terms.extend(entry.org.as_ref().map(|org| term('g', &[org])));
        terms.extend(entry.approver_id().map(|approver| term('a', &[approver])));
        terms.extend(entry.is_edited().then(|| term('e', &[])));
        if is_error(entry) {
            terms.extend([term('o', &[ANY_ERROR]), term('c', &[tool, ANY_ERROR])]);
        }
        if let Some(principal) = entry.principal_key() {
            terms.push(term('p', &[&principal]));
        }
        if let Some(parent) = parent {
            // The id of a nested call begins with those of the calls around it.
            let ends = parent.match_indices('.').map(|(at, _)| at).chain([parent.len()]);
            terms.extend(ends.map(|end| term('x', &[session, &parent[..end]])));
        }
        Self { at: *at, terms }
    }
}

fn is_call(entry: &AuditEntry) -> bool {
    CALL_EVENTS.contains(&entry.event.as_str())
}

/// Whether it is a call that failed.
fn is_error(entry: &AuditEntry) -> bool {
    is_call(entry) && entry.outcome != "ok"
}

/// Whether an entry belongs to this execution or to a call that it has made.
fn is_within(entry: &AuditEntry, root: &str) -> bool {
    let is_nested = |parent: &String| {
        parent.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    entry.execution_id == root || entry.parent.as_ref().is_some_and(is_nested)
}

/// A hash of a kind and its values, the same in every process: FNV-1a, with a last step that spreads its bits.
fn term(kind: char, values: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    add(kind as u8);
    for value in values {
        value.bytes().for_each(&mut add);
        // Ends the value: no byte of UTF-8.
        add(0xff);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// Consecutive entries of the audit, and where they may match.
pub(super) trait AuditSource {
    /// Up to `limit` ranges of entries, first and last number, that are before this number and may have a match; the
    /// newest first.
    fn candidates(&self, before: u64, filter: &AuditFilter, limit: usize) -> Result<Vec<(u64, u64)>>;

    /// The entries of a range, in their order.
    fn entries(&self, first: u64, last: u64) -> Result<Vec<NumberedEntry>>;
}

/// How many ranges are asked for at a time.
const CANDIDATES: usize = 8;

/// Reads a page.
pub(super) fn read_page(source: &impl AuditSource, query: &AuditQuery) -> Result<AuditPage> {
    let mut page = AuditPage::default();
    let mut before = query.before.unwrap_or(u64::MAX);
    let mut scanned = 0;
    loop {
        let candidates = source.candidates(before, &query.filter, CANDIDATES)?;
        let is_last = candidates.len() < CANDIDATES;
        for (first, last) in candidates {
            let entries = source.entries(first, last.min(before - 1))?;
            scanned += entries.len();
            for found in entries.into_iter().rev().filter(|found| query.filter.matches(&found.entry)) {
                if page.entries.len() == query.limit {
                    page.next = page.entries.last().map(|last| last.number);
                    return Ok(page);
                }
                page.entries.push(found);
            }
            before = first;
            if scanned >= MAX_SCANNED {
                page.next = (before > 1).then_some(before);
                return Ok(page);
            }
        }
        if is_last {
            return Ok(page);
        }
    }
}
