//! `/audit`: the entries of the audit with filters, whether its chain is intact, and its export. For admins.

use bytes::Bytes;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use toolwright_console::audit::{AuditEntryRow, AuditFilters, AuditPage};
use toolwright_console::format::{count, shorten, utc_time};
use toolwright_console::parts::{Chip, Code, CsrfField, Notice, Pager, Time, Tone};
use toolwright_console::{Layout, Page};
use toolwright_orchestrator::store::{AuditFilter, AuditQuery, Backend, CALL_EVENTS, NumberedEntry};

use super::audit_check::{CheckState, Outcome};
use super::call_page::entry_note;
use super::calls_page::{
    address, call_address, entry_duration, period_start, periods, principal_key, text, user_name,
};
use super::{form, layout, page, redirect};
use crate::body;
use crate::chunk_queue;
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};

const PAGE: usize = 100;
/// Entries that are read at a time for an export.
const BATCH: usize = 1000;
const NAMES: [&str; 6] = ["event", "tool", "outcome", "session", "principal", "since"];

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [event, tool, outcome, session, principal, since, before] =
        request.query(["event", "tool", "outcome", "session", "principal", "since", "before"])?.map(text);
    let values = [&event, &tool, &outcome, &session, &principal, &since];
    let filter = filter(&request, values);
    let before =
        before.as_deref().map(|text| number("before", Some(text), 0, i64::MAX as u64)).transpose()?;
    let query = AuditQuery { filter, before, limit: PAGE };
    let found = request.app.orchestrator.store().audit_page(&query).await?;
    let parameters: Vec<(&str, &Option<String>)> = NAMES.into_iter().zip(values).collect();
    let is_filtered = values.iter().any(|value| value.is_some());
    let layout = layout(&request, Page::Audit, "Audit").await?;
    let check = request.app.audit_check.state();
    let (verified, heads) = verification(&check);
    page(&AuditPage {
        verified,
        heads,
        is_verifying: matches!(check, CheckState::Running(_)),
        verify: address("/audit/verify", &parameters, None),
        csrf: CsrfField(layout.csrf.clone()),
        entries: found.entries.iter().map(entry_row).collect(),
        pager: Pager {
            first: before.map(|_| address("/audit", &parameters, None)),
            next: found.next.map(|next| address("/audit", &parameters, Some(next))),
            ..Pager::default()
        },
        export: address("/audit/export", &parameters, None),
        filters: AuditFilters {
            times: periods(since.as_deref()),
            clear: is_filtered.then(|| "/audit".to_owned()),
            event: event.unwrap_or_default(),
            tool: tool.unwrap_or_default(),
            outcome: outcome.unwrap_or_default(),
            session: session.unwrap_or_default(),
            principal: principal.unwrap_or_default(),
        },
        layout: Layout { scripts: &["audit.js"], ..layout },
    })
}

/// Begins a verification, and redirects to the page with the same filters, which has the result.
pub(crate) async fn verify(mut request: ApiRequest<'_>) -> ApiResult {
    form::read(&mut request).await?;
    let values = request.query(NAMES)?.map(text);
    let parameters: Vec<(&str, &Option<String>)> = NAMES.into_iter().zip(&values).collect();
    request.app.audit_check.run(request.app).await;
    Ok(redirect(&address("/audit", &parameters, None)))
}

/// What the page says about the last verification, and the heads to be saved elsewhere.
fn verification(state: &CheckState) -> (Option<Notice>, Option<Code>) {
    let verdict = match state {
        CheckState::Never => return (None, None),
        CheckState::Running(entries) => {
            let text = format!("Entries that were checked so far: {}.", count(*entries));
            return (Some(Notice::new(Tone::Info, "The audit is being verified.", text)), None);
        }
        CheckState::Done(verdict) => verdict,
    };
    let began = utc_time(verdict.at);
    match &verdict.outcome {
        Outcome::Intact { entries, heads } => {
            let text = format!("Entries that were checked: {}. Begun at {began}.", count(*entries));
            let lines: Vec<String> =
                heads.iter().filter_map(|head| serde_json::to_string(head).ok()).collect();
            let notice = Notice::new(Tone::Ok, "The audit is intact.", text);
            (Some(notice), Some(Code::new("Heads", lines.join("\n"))))
        }
        Outcome::Changed(error) => {
            let text = format!("{error}. The verification began at {began}.");
            (Some(Notice::new(Tone::Bad, "The audit was changed.", text)), None)
        }
        Outcome::Unknown => {
            let text = "The store could not be read. Verify again.";
            (Some(Notice::new(Tone::Bad, "The audit could not be verified.", text)), None)
        }
    }
}

fn filter(
    request: &ApiRequest<'_>,
    [event, tool, outcome, session, principal, since]: [&Option<String>; 6],
) -> AuditFilter {
    AuditFilter {
        event: event.clone(),
        tool: tool.clone(),
        outcome: outcome.clone(),
        session: session.clone(),
        principal: principal.as_deref().map(principal_key),
        from: since.as_deref().and_then(|since| period_start(request, since)),
        ..AuditFilter::default()
    }
}

fn entry_row(NumberedEntry { number, entry }: &NumberedEntry) -> AuditEntryRow {
    let is_call = CALL_EVENTS.contains(&entry.event.as_str());
    let has_call = !entry.execution_id.is_empty();
    AuditEntryRow {
        number: *number,
        time: Time(entry.at),
        event: shorten(&entry.event, 60),
        tool: shorten(&entry.tool, 60),
        outcome: if is_call {
            Chip::outcome(&entry.outcome)
        } else {
            Chip::new(Tone::Plain, shorten(&entry.outcome, 40))
        },
        user: user_name(entry),
        session: shorten(&entry.session, 24),
        href: if has_call { call_address(&entry.session, &entry.execution_id) } else { String::new() },
        duration: if is_call { entry_duration(entry) } else { String::new() },
        more: entry_note(entry),
    }
}

/// The entries that match, newest first, as JSON lines.
pub(crate) async fn export(request: ApiRequest<'_>) -> ApiResult {
    let values = request.query(NAMES)?.map(text);
    let [event, tool, outcome, session, principal, since] = &values;
    let filter = filter(&request, [event, tool, outcome, session, principal, since]);
    let (lines, chunks) = chunk_queue::channel();
    let app = std::sync::Arc::clone(request.app);
    tokio::spawn(async move {
        let mut before = None;
        loop {
            let query = AuditQuery { filter: filter.clone(), before, limit: BATCH };
            // A store that fails ends the file in the middle of a line, so that it is visibly incomplete.
            let Ok(page) = app.orchestrator.store().audit_page(&query).await else {
                let _ = lines.send(Bytes::from_static(b"{\"error\": \"the store is unavailable")).await;
                return;
            };
            let text: String = page.entries.iter().map(export_line).collect();
            if !text.is_empty() && lines.send(Bytes::from(text)).await.is_err() {
                return;
            }
            match page.next {
                Some(next) => before = Some(next),
                None => return,
            }
        }
    });
    let mut response = body::stream("application/x-ndjson", chunks);
    let name = HeaderValue::from_static("attachment; filename=\"audit.jsonl\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

fn export_line(NumberedEntry { number, entry }: &NumberedEntry) -> String {
    let line = serde_json::json!({ "number": number, "entry": entry });
    format!("{line}\n")
}
