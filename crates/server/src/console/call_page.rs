//! `/calls/{executionId}?session=…`: one call, and the form to make it again.

use serde_json::{Map, Value};
use toolwright_console::call_page::{CallPage, HistoryRow, NestedRow, RepeatForm, waterfall};
use toolwright_console::format::{shorten, url_part};
use toolwright_console::parts::{Chip, Code, CsrfField, Notice, Time, Tone};
use toolwright_console::{Layout, Page};
use toolwright_contract::Mode;
use toolwright_orchestrator::store::{AuditEntry, CALL_EVENTS, NumberedEntry};
use toolwright_orchestrator::{CallHistory, RecordSource};

use super::calls_page::{call_address, entry_duration, record_address, user_name};
use super::{form, layout, own_call, page, redirect, refused_page};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};
use crate::rest::call_history::find;

/// The most characters of an id that a person has chosen.
const MAX_FACT: usize = 100;
/// Longer arguments are not put into an address.
const MAX_ADDRESS: usize = 4000;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let session = session_parameter(&request)?;
    let history = find(&request, &session, request.parameter).await?;
    page(&view(&request, &session, &history, None).await?)
}

/// Makes the call again: with the arguments of the form, as the sender of the form.
pub(crate) async fn repeat_call(mut request: ApiRequest<'_>) -> ApiResult {
    let session = session_parameter(&request)?;
    let form = form::read(&mut request).await?;
    let history = find(&request, &session, request.parameter).await?;
    let text = form.required("args")?;
    let args = match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(args) => Value::Object(args),
        Err(error) => {
            let error = format!("The arguments must be a JSON object: {error}.");
            let failed = (text.to_owned(), error);
            return refused_page(&view(&request, &session, &history, Some(failed)).await?);
        }
    };
    let tool = last_call(&history).map(|entry| entry.tool.clone()).unwrap_or_default();
    let mode = mode_of_call(&request, &session, &tool).await?;
    let made = own_call::call(&request, &tool, args, mode).await?;
    Ok(redirect(&call_address(&made.session, &made.envelope.meta.execution_id)))
}

/// The mode of the session. Sessions of calls that only read are not stored: then text, if the tool is allowed there.
async fn mode_of_call(request: &ApiRequest<'_>, session: &str, tool: &str) -> Result<Mode, Problem> {
    if let Some(session) = request.app.orchestrator.session(session).await? {
        return Ok(session.mode);
    }
    let current = request.app.orchestrator.current();
    let modes = current.toolset().get(tool).map(|tool| tool.spec.allowed_modes.clone()).unwrap_or_default();
    let is_text = modes.is_empty() || modes.contains(&Mode::Text);
    Ok(modes.first().copied().filter(|_| !is_text).unwrap_or(Mode::Text))
}

fn session_parameter(request: &ApiRequest<'_>) -> Result<String, Problem> {
    let [session] = request.query(["session"])?;
    let detail = "Execution ids are unique within a session: add the query parameter `session`.";
    session.map(std::borrow::Cow::into_owned).ok_or_else(|| Problem::new(Kind::BAD_REQUEST, detail))
}

/// The entry of the call itself: the run, or the last refusal.
fn last_call(history: &CallHistory) -> Option<&AuditEntry> {
    let entries = || history.entries.iter().map(|found| &found.entry);
    let is_call = |entry: &&AuditEntry| CALL_EVENTS.contains(&entry.event.as_str());
    entries()
        .find(|entry| entry.event == "called")
        .or_else(|| entries().rev().find(is_call))
        .or_else(|| entries().next_back())
}

async fn view(
    request: &ApiRequest<'_>,
    session: &str,
    history: &CallHistory,
    failed: Option<(String, String)>,
) -> Result<CallPage, Problem> {
    let entry = last_call(history).cloned().unwrap_or_default();
    let layout: Layout = layout(request, Page::Calls, entry.tool.clone()).await?;
    let args: Option<Value> = history.args.as_deref().and_then(|args| serde_json::from_str(args).ok());
    let args_text = args.as_ref().map(toolwright_console::format::pretty);
    let current = request.app.orchestrator.current();
    let is_known = current.toolset().get(&entry.tool).is_some();
    let (failed_args, error) = failed.unzip();
    let again = is_known.then(|| RepeatForm {
        csrf: CsrfField(layout.csrf.clone()),
        action: format!("/calls/{}/again?session={}", url_part(request.parameter), url_part(session)),
        args: failed_args.or(args_text.clone()).unwrap_or_else(|| "{}".to_owned()),
        error,
    });
    let envelope = history.envelope.as_deref().and_then(|envelope| serde_json::to_value(envelope).ok());
    let (args_note, envelope_note) = notes(history);
    let steps: Vec<(&str, u32)> = entry.steps.iter().map(|(step, micros)| (step.as_str(), micros)).collect();
    let mode = mode_of_call(request, session, &entry.tool).await?;
    let whole = record_address(session, request.parameter);
    Ok(CallPage {
        layout,
        tool_href: tool_address(&entry.tool, mode, history.args.as_deref()),
        execution: request.parameter.to_owned(),
        session: session.to_owned(),
        session_href: format!("/sessions/{}", url_part(session)),
        outcome: Chip::outcome(&entry.outcome),
        time: Time(entry.at),
        facts: facts(&entry, session),
        notices: notices(history),
        steps: waterfall(steps.into_iter()),
        parent_href: entry.parent.as_ref().map(|parent| call_address(session, parent)),
        args: args_text.map(|text| Code::new("Arguments", text).with_whole(whole.as_str())),
        args_note,
        envelope: envelope.map(|value| Code::json("Envelope", &value).with_whole(whole.as_str())),
        envelope_note,
        history: history.entries.iter().map(history_row).collect(),
        nested: nested_rows(request.parameter, session, &history.nested),
        again,
        tool: entry.tool,
    })
}

/// The page of the tool, with its form filled in if the arguments fit into an address.
fn tool_address(tool: &str, mode: Mode, args: Option<&str>) -> String {
    match args.map(url_part).filter(|args| args.len() < MAX_ADDRESS) {
        Some(args) => format!("/tools/{}?tab=try&mode={mode}&args={args}", url_part(tool)),
        None => format!("/tools/{}", url_part(tool)),
    }
}

fn facts(entry: &AuditEntry, session: &str) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Duration", entry_duration(entry)),
        ("User", user_name(entry)),
        ("Client", shorten(&entry.client_id, MAX_FACT)),
        ("Session", shorten(session, MAX_FACT)),
        ("Tool version", entry.tool_version.clone()),
        ("Toolset", entry.registry_version.clone()),
    ];
    if !entry.intents.is_empty() {
        facts.push(("Intents", shorten(&entry.intents.join(", "), 500)));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn notices(history: &CallHistory) -> Vec<Notice> {
    let mut notices = Vec::new();
    let envelope = history.envelope.as_deref();
    if let Some(failure) = envelope.and_then(|envelope| envelope.outcome.as_ref().err()) {
        let text = shorten(&failure.text(), 2000);
        let tone = if failure.kind.as_str() == "CONFIRMATION_REQUIRED" { Tone::Warn } else { Tone::Bad };
        notices.push(Notice::new(tone, failure.kind.as_str(), text));
    }
    let count = |event: &str| history.entries.iter().filter(|found| found.entry.event == event).count();
    if history.source == RecordSource::Unsettled && count("called") == 0 {
        let text = "It runs now, or the process that ran it has stopped and its outcome is unknown.";
        notices.push(Notice::new(Tone::Warn, "This call has no result.", text));
    }
    if history.is_truncated {
        let text = "Only the newest entries are shown; the audit has all of them.";
        notices.push(Notice::new(Tone::Info, "This call has many entries.", text));
    }
    notices
}

/// The text in place of missing arguments or a missing envelope.
fn notes(history: &CallHistory) -> (String, String) {
    let has = |value: bool, text: &str| if value { String::new() } else { text.to_owned() };
    let (args, envelope) = (history.args.is_some(), history.envelope.is_some());
    match history.source {
        RecordSource::Stored => (
            has(
                args,
                "The arguments were not recorded: they are longer than 64 KB, or of an earlier version.",
            ),
            String::new(),
        ),
        RecordSource::Unsettled => (
            has(args, "The arguments are recorded with the result."),
            has(envelope, "There is no result yet."),
        ),
        RecordSource::Memory => {
            let note = "Arguments and result are kept in memory for a short time only.";
            (
                has(args, "The arguments were not kept."),
                if envelope { note.to_owned() } else { "The result is too large to be kept.".to_owned() },
            )
        }
        RecordSource::Gone => {
            let gone = "No longer in memory: of a call that only reads, or was refused, the store has only the audit entry.";
            (gone.to_owned(), gone.to_owned())
        }
    }
}

fn history_row(NumberedEntry { number, entry }: &NumberedEntry) -> HistoryRow {
    let is_call = CALL_EVENTS.contains(&entry.event.as_str());
    HistoryRow {
        number: *number,
        time: Time(entry.at),
        event: entry.event.clone(),
        outcome: is_call.then(|| Chip::outcome(&entry.outcome)),
        duration: if is_call { entry_duration(entry) } else { String::new() },
        note: entry_note(entry),
    }
}

/// The other facts of an entry: the approver, clamped limits, entries of the handler.
pub(super) fn entry_note(entry: &AuditEntry) -> String {
    let data = &entry.data;
    let mut notes = Vec::new();
    if let Some(by) = data["by"].as_str() {
        notes.push(format!("by {by}"));
    }
    if data["edited"] == true {
        notes.push("with edited arguments".to_owned());
    }
    if let Some(reason) = data["reason"].as_str() {
        notes.push(shorten(reason, 200));
    }
    if notes.is_empty() && !data.is_null() {
        notes.push(shorten(&data.to_string(), 200));
    }
    notes.join(", ")
}

/// The nested calls as a tree: each after the call that has made it.
fn nested_rows(root: &str, session: &str, nested: &[NumberedEntry]) -> Vec<NestedRow> {
    let mut rows = Vec::new();
    add_children(root, 1, session, nested, &mut rows);
    rows
}

fn add_children(
    parent: &str,
    depth: usize,
    session: &str,
    nested: &[NumberedEntry],
    rows: &mut Vec<NestedRow>,
) {
    let is_child = |entry: &&AuditEntry| {
        entry.parent.as_deref() == Some(parent) && CALL_EVENTS.contains(&entry.event.as_str())
    };
    for entry in nested.iter().map(|found| &found.entry).filter(is_child) {
        rows.push(NestedRow {
            // Deeper ones are not indented further.
            depth: depth.min(8),
            tool: entry.tool.clone(),
            href: call_address(session, &entry.execution_id),
            execution: entry.execution_id.clone(),
            outcome: Chip::outcome(&entry.outcome),
            duration: entry_duration(entry),
        });
        if depth < 16 {
            add_children(&entry.execution_id, depth + 1, session, nested, rows);
        }
    }
}
