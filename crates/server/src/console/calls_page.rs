//! `/calls`: the calls that have ended, with filters in the query string.

use std::borrow::Cow;

use toolwright_console::Page;
use toolwright_console::call_list::{CallFilters, CallRow, CallsPage};
use toolwright_console::format::{duration, shorten, url_part};
use toolwright_console::parts::{Chip, Choice, Pager, Time, Tone};
use toolwright_contract::{ErrorKind, Principal};
use toolwright_orchestrator::store::{ANY_ERROR, AuditEntry, AuditFilter, AuditQuery, Backend, CALL_EVENTS};

use super::{layout, page};
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};
use crate::rest::call_history::visible_to;

/// Calls on a page.
const PAGE: usize = 50;
/// How many tools a field suggests.
const MAX_SUGGESTED: usize = 200;
/// The periods to choose from: the value in the address, its text, and milliseconds.
pub(super) const PERIODS: [(&str, &str, i64); 4] = [
    ("15m", "Last 15 minutes", 15 * 60_000),
    ("1h", "Last hour", 60 * 60_000),
    ("24h", "Last 24 hours", 24 * 60 * 60_000),
    ("7d", "Last 7 days", 7 * 24 * 60 * 60_000),
];

/// The filters in the query string.
struct Filters {
    tool: Option<String>,
    outcome: Option<String>,
    event: Option<String>,
    session: Option<String>,
    principal: Option<String>,
    since: Option<String>,
}

impl Filters {
    /// As names and values of the query string.
    fn parameters(&self) -> [(&'static str, &Option<String>); 6] {
        [
            ("tool", &self.tool),
            ("outcome", &self.outcome),
            ("event", &self.event),
            ("session", &self.session),
            ("principal", &self.principal),
            ("since", &self.since),
        ]
    }

    fn is_set(&self) -> bool {
        self.parameters().iter().any(|(_, value)| value.is_some())
    }

    /// `own` is the only principal whose calls the caller may see.
    fn to_query(&self, request: &ApiRequest<'_>, own: Option<String>) -> AuditFilter {
        AuditFilter {
            calls_only: true,
            event: self.event.clone(),
            tool: self.tool.clone(),
            outcome: self.outcome.clone(),
            session: self.session.clone(),
            principal: own.or_else(|| self.principal.as_deref().map(principal_key)),
            from: self.since.as_deref().and_then(|since| period_start(request, since)),
            until: None,
            ..AuditFilter::default()
        }
    }

    fn to_view(&self, request: &ApiRequest<'_>, sees_all: bool) -> CallFilters {
        CallFilters {
            tool: self.tool.clone().unwrap_or_default(),
            tools: tool_names(request),
            outcomes: outcomes(self.outcome.as_deref()),
            events: Choice::words("However it ended", &CALL_EVENTS, self.event.as_deref()),
            times: periods(self.since.as_deref()),
            session: self.session.clone().unwrap_or_default(),
            principal: sees_all.then(|| self.principal.clone().unwrap_or_default()),
            clear: self.is_set().then(|| "/calls".to_owned()),
        }
    }
}

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let names = ["tool", "outcome", "event", "session", "principal", "since", "before"];
    let [tool, outcome, event, session, principal, since, before] = request.query(names)?.map(text);
    let filters = Filters { tool, outcome, event, session, principal, since };
    let own = visible_to(&request)?;
    let sees_all = own.is_none();
    let before =
        before.as_deref().map(|text| number("before", Some(text), 0, i64::MAX as u64)).transpose()?;
    let query = AuditQuery { filter: filters.to_query(&request, own), before, limit: PAGE };
    let found = request.app.orchestrator.store().audit_page(&query).await?;
    let address = |before: Option<u64>| address("/calls", &filters.parameters(), before);
    let layout = layout(&request, Page::Calls, "Calls").await?;
    page(&CallsPage {
        layout,
        empty: empty_text(filters.is_set(), found.next.is_some()).to_owned(),
        pager: Pager {
            first: before.map(|_| address(None)),
            next: found.next.map(|next| address(Some(next))),
            ..Pager::default()
        },
        is_live: before.is_none(),
        filters: filters.to_view(&request, sees_all),
        calls: found.entries.iter().map(|found| row(&found.entry)).collect(),
    })
}

fn empty_text(is_filtered: bool, has_older: bool) -> &'static str {
    match (is_filtered, has_older) {
        (_, true) => "No match among the newest calls that were read. Older ones may match: go on with Next.",
        (true, false) => "No call matches these filters.",
        (false, false) => "No tool was called yet. Try one on its page, or ask in the chat.",
    }
}

/// The value of a parameter, unless it is empty.
pub(super) fn text(value: Option<Cow<'_, str>>) -> Option<String> {
    value.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The key of the principal that a filter names: `id`, or `org/id`.
pub(super) fn principal_key(name: &str) -> String {
    let (org, id) = name.split_once('/').map_or((None, name), |(org, id)| (Some(org.to_owned()), id));
    Principal { id: id.to_owned(), org, roles: Vec::new() }.key()
}

/// The name of a user in filters.
pub(super) fn user_name(entry: &AuditEntry) -> String {
    let name = match &entry.org {
        Some(org) => format!("{org}/{}", entry.principal),
        None => entry.principal.clone(),
    };
    shorten(&name, 80)
}

/// The start of a period of [`PERIODS`].
pub(super) fn period_start(request: &ApiRequest<'_>, name: &str) -> Option<i64> {
    let (_, _, ms) = PERIODS.iter().find(|(value, _, _)| *value == name)?;
    Some(request.app.orchestrator.now() - ms)
}

pub(super) fn periods(selected: Option<&str>) -> Vec<Choice> {
    let all = Choice::new("", "At any time", selected);
    let each = PERIODS.iter().map(|(value, label, _)| Choice::new(*value, *label, selected));
    std::iter::once(all).chain(each).collect()
}

/// The address of a page with these parameters.
pub(super) fn address(path: &str, parameters: &[(&str, &Option<String>)], before: Option<u64>) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((*name, (*value).clone()?)));
    let before = before.map(|before| ("before", before.to_string()));
    let mut address = path.to_owned();
    for (at, (name, value)) in given.chain(before).enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(&format!("{name}={}", url_part(&value)));
    }
    address
}

fn outcomes(selected: Option<&str>) -> Vec<Choice> {
    let mut choices = vec![
        Choice::new("", "Any outcome", selected),
        Choice::new("ok", "ok", selected),
        Choice::new(ANY_ERROR, "any error", selected),
    ];
    choices.extend(ErrorKind::WORDS.iter().map(|kind| Choice::new(*kind, *kind, selected)));
    choices
}

/// The tools that the caller may see, as suggestions.
pub(super) fn tool_names(request: &ApiRequest<'_>) -> Vec<String> {
    let current = request.app.orchestrator.current();
    let mut names: Vec<String> = current.toolset().ids().map(str::to_owned).collect();
    if !request.is_admin() || names.len() > MAX_SUGGESTED {
        names.clear();
    }
    names
}

/// A call of a list.
pub(super) fn row(entry: &AuditEntry) -> CallRow {
    CallRow {
        time: Time(entry.at),
        tool: shorten(&entry.tool, 60),
        href: call_address(&entry.session, &entry.execution_id),
        outcome: Chip::outcome(&entry.outcome),
        event: (entry.event != "called" && entry.outcome != "CONFIRMATION_REQUIRED")
            .then(|| Chip::new(Tone::Plain, entry.event.clone())),
        duration: entry_duration(entry),
        user: user_name(entry),
        session: shorten(&entry.session, 24),
        session_href: format!("/sessions/{}", url_part(&entry.session)),
    }
}

/// The duration of a call: exact, if its steps are known.
pub(super) fn entry_duration(entry: &AuditEntry) -> String {
    let micros: u64 = entry.steps.iter().map(|(_, micros)| u64::from(micros)).sum();
    if entry.steps.is_empty() {
        return duration(entry.duration_ms as f64);
    }
    toolwright_console::call_page::micros_text(micros)
}

/// The address of all that is recorded of a call, as JSON.
pub(super) fn record_address(session: &str, execution: &str) -> String {
    format!("/v1/calls/{}?sessionId={}", url_part(execution), url_part(session))
}

/// The address of a call's page.
pub(super) fn call_address(session: &str, execution: &str) -> String {
    format!("/calls/{}?session={}", url_part(execution), url_part(session))
}
