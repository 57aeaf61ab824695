//! `/sessions`: the sessions, one of them with its conversation and its calls, and its end.

use toolwright_agent::{InputPart, Message, Part, TurnOutcome};
use toolwright_console::format::{count, shorten, url_part};
use toolwright_console::parts::{Chip, Code, CsrfField, Pager, Time, Tone};
use toolwright_console::session_list::{SessionRow, SessionsPage};
use toolwright_console::session_page::{MeterRow, SessionPage, TranscriptPart, TranscriptTurn};
use toolwright_console::{Layout, Page};
use toolwright_orchestrator::store::{
    AuditFilter, AuditQuery, Backend, MeterScope, SessionQuery, SessionRecord, SessionStatus,
};

use super::calls_page::{call_address, row};
use super::{form, layout, page, redirect};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};
use crate::rest::call_history::visible_to;
use crate::rest::sessions::parse_place;

/// Sessions on a page, and calls on the page of a session.
const PAGE: usize = 50;
const CALLS: usize = 20;
/// Turns that are shown, and characters of one text.
const MAX_TURNS: usize = 30;
const MAX_TEXT: usize = 4000;

pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [before] = request.query(["before"])?;
    let place = before.as_deref().map(parse_place).transpose()?;
    let principal = visible_to(&request)?;
    let query = SessionQuery { principal: principal.as_deref(), before: place, limit: PAGE };
    let found = request.app.orchestrator.sessions(query).await?;
    page(&SessionsPage {
        layout: layout(&request, Page::Sessions, "Sessions").await?,
        sessions: found.sessions.iter().map(|session| session_row(session)).collect(),
        pager: Pager {
            first: before.is_some().then(|| "/sessions".to_owned()),
            next: found.next.map(|(at, id)| format!("/sessions?before={}", url_part(&format!("{at}.{id}")))),
            ..Pager::default()
        },
    })
}

fn session_row(session: &SessionRecord) -> SessionRow {
    SessionRow {
        id: shorten(&session.id, 40),
        href: format!("/sessions/{}", url_part(&session.id)),
        status: status_chip(session),
        mode: session.mode.to_string(),
        user: user(session),
        client: shorten(&session.client_id, 40),
        turns: count(session.turn),
        toolset: session.registry_version().to_owned(),
        created: Time(session.created_at),
    }
}

fn status_chip(session: &SessionRecord) -> Chip {
    match session.status {
        SessionStatus::Active if session.is_ending() => Chip::new(Tone::Warn, "ending"),
        SessionStatus::Active => Chip::new(Tone::Ok, "active"),
        SessionStatus::Ended => Chip::new(Tone::Plain, "ended"),
        SessionStatus::Expired => Chip::new(Tone::Plain, "expired"),
    }
}

fn user(session: &SessionRecord) -> String {
    let principal = &session.principal;
    let name = principal.org.as_ref().map(|org| format!("{org}/{}", principal.id));
    shorten(name.as_ref().unwrap_or(&principal.id), 80)
}

/// The session of the path, if the caller may see it.
async fn find(request: &ApiRequest<'_>) -> Result<std::sync::Arc<SessionRecord>, Problem> {
    if request.is_admin() {
        let session = request.app.orchestrator.session(request.parameter).await?;
        return session.ok_or_else(|| Problem::not_found("Session", request.parameter));
    }
    request.own_session(request.parameter).await
}

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    let session = find(&request).await?;
    let layout: Layout = layout(&request, Page::Sessions, session.id.clone()).await?;
    let filter =
        AuditFilter { calls_only: true, session: Some(session.id.clone()), ..AuditFilter::default() };
    let query = AuditQuery { filter, before: None, limit: CALLS };
    let calls = request.app.orchestrator.store().audit_page(&query).await?;
    let (turns, is_truncated) = transcript(&request, &session.id).await?;
    let is_active = session.status == SessionStatus::Active;
    let has_chat = request.app.options.agent.is_some() && !turns.is_empty();
    page(&SessionPage {
        id: session.id.clone(),
        status: status_chip(&session),
        created: Time(session.created_at),
        expires: Time(session.expires_at),
        facts: facts(&session),
        notices: Vec::new(),
        meters: meters(&request, &session),
        state: Code::json("State", &session.state)
            .with_whole(format!("/v1/sessions/{}", url_part(&session.id))),
        turns,
        is_truncated,
        calls: calls.entries.iter().map(|found| row(&found.entry)).collect(),
        calls_href: format!("/calls?session={}", url_part(&session.id)),
        chat_href: (has_chat && is_active).then(|| format!("/chat/{}", url_part(&session.id))),
        end: is_active.then(|| CsrfField(layout.csrf.clone())),
        layout,
    })
}

pub(crate) async fn end(mut request: ApiRequest<'_>) -> ApiResult {
    form::read(&mut request).await?;
    let session = find(&request).await?;
    request.app.orchestrator.end_session(&session.id).await?;
    Ok(redirect(&format!("/sessions/{}", url_part(&session.id))))
}

fn facts(session: &SessionRecord) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Mode", session.mode.to_string()),
        ("User", user(session)),
        ("Roles", shorten(&session.principal.roles.join(", "), 500)),
        ("Client", shorten(&session.client_id, 100)),
        ("Turns", count(session.turn)),
        ("Toolset", session.registry_version().to_owned()),
        ("Runs without asking", shorten(&session.remembered.join(", "), 500)),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn meters(request: &ApiRequest<'_>, session: &SessionRecord) -> Vec<MeterRow> {
    let uses = request.app.orchestrator.meter_uses(session);
    let rows = uses.into_iter().map(|own| MeterRow {
        name: own.meter,
        scope: match own.scope {
            MeterScope::Turn => "turn",
            MeterScope::Session => "session",
        },
        spent: count(own.spent.into()),
        limit: own.limit.map(|limit| count(limit.into())).unwrap_or_default(),
    });
    rows.collect()
}

/// The last turns of the conversation, and whether there are more.
async fn transcript(request: &ApiRequest<'_>, session: &str) -> Result<(Vec<TranscriptTurn>, bool), Problem> {
    let Some(agent) = &request.app.options.agent else { return Ok((Vec::new(), false)) };
    let history = agent.history(session).await?;
    let skipped = history.len().saturating_sub(MAX_TURNS);
    let turns = history.iter().skip(skipped).map(|message| turn(session, message));
    Ok((turns.collect(), skipped > 0))
}

fn turn(session: &str, message: &Message) -> TranscriptTurn {
    let part = |role, text: &str| TranscriptPart { role, text: shorten(text, MAX_TEXT), href: None };
    let said = |input: &InputPart| match input {
        InputPart::Text { text } => part("user", text),
        _ => part("user", "(a picture)"),
    };
    let done = |own: &Part| match own {
        Part::Text { text, .. } => Some(part("assistant", text)),
        Part::Tool(tool) => Some(TranscriptPart {
            role: "tool",
            text: tool.call.tool.clone(),
            href: Some(call_address(session, &tool.call.id)),
        }),
        _ => None,
    };
    match message {
        Message::User(user) => TranscriptTurn { parts: user.parts.iter().map(said).collect(), outcome: None },
        Message::Assistant(reply) => TranscriptTurn {
            parts: reply.steps.iter().flat_map(|step| &step.parts).filter_map(done).collect(),
            outcome: reply.outcome.as_ref().and_then(outcome_chip),
        },
        _ => TranscriptTurn { parts: Vec::new(), outcome: None },
    }
}

/// The outcome of a turn, unless it was an answer.
fn outcome_chip(outcome: &TurnOutcome) -> Option<Chip> {
    let tone = match outcome {
        TurnOutcome::Completed => return None,
        TurnOutcome::AwaitsApproval | TurnOutcome::AwaitsClient => Tone::Warn,
        TurnOutcome::Failed { .. } => Tone::Bad,
        _ => Tone::Plain,
    };
    Some(Chip::new(tone, outcome.as_str().replace('_', " ")))
}
