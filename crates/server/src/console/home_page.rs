//! `GET /`: status, problems, and how to connect.

use serde_json::json;
use toolwright_agent::Model;
use toolwright_console::call_list::CallRow;
use toolwright_console::format::plural;
use toolwright_console::home::{CheckRow, Finding, HomePage, StatusRow};
use toolwright_console::parts::{Chip, Notice, Tone, Words};
use toolwright_console::recipe::{ExampleCall, recipes};
use toolwright_console::{Layout, Page};
use toolwright_orchestrator::store::{AuditFilter, AuditQuery, Backend, Store};

use super::calls_page::row;
use super::chat_page::{examples, text_session};
use super::{base_url, layout, page};
use crate::app::App;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};
use crate::rest::call_history::visible_to;
use crate::setup::{BuildFinding, SetupCheck, SetupStatus};

/// How many calls are shown.
const CALLS: usize = 6;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    let layout = Layout { scripts: &["home.js"], ..layout(&request, Page::Home, "Home").await? };
    let base = base_url(&request);
    let needs_key = !request.app.auth.is_open();
    let setup = &request.app.options.setup;
    let (mut checks, findings) = (setup.checks(), setup.findings());
    // Problems come first.
    checks.sort_by_key(|check| match check.status {
        SetupStatus::Broken => 0,
        SetupStatus::Missing => 1,
        SetupStatus::Ok => 2,
    });
    let current = request.app.orchestrator.current();
    let session = text_session(&request)?;
    let examples = examples(&request, &current, &session);
    let example =
        examples.filter(|(_, args)| args != &json!({})).min_by_key(|(_, args)| args.to_string().len());
    let example = example.as_ref().map(|(tool, args)| ExampleCall { tool, args });
    let notices = notices(request.app, &checks);
    let is_broken = checks.iter().any(|check| check.status == SetupStatus::Broken);
    let has_errors = findings.iter().any(|finding| finding.is_error);
    let headline = match (has_errors, is_broken) {
        (true, _) => "The tools do not build: the toolset before is served",
        (false, true) => "Running, with something to fix",
        (false, false) => "Everything is running",
    };
    page(&HomePage {
        headline: headline.to_owned(),
        subline: format!("{base} · {}", store_name(request.app)),
        findings: findings.into_iter().map(finding).collect(),
        is_watching: setup.is_watching(),
        facts: facts(request.app, &checks),
        checks: checks.iter().map(check_row).collect(),
        recipes: recipes(&base, needs_key, example.as_ref()),
        calls: last_calls(&request).await?,
        notices,
        layout,
    })
}

/// The last calls that this user may see.
async fn last_calls(request: &ApiRequest<'_>) -> Result<Vec<CallRow>, Problem> {
    let filter = AuditFilter { calls_only: true, principal: visible_to(request)?, ..AuditFilter::default() };
    let query = AuditQuery { filter, before: None, limit: CALLS };
    let found = request.app.orchestrator.store().audit_page(&query).await?;
    Ok(found.entries.iter().map(|found| row(&found.entry)).collect())
}

fn facts(app: &App, checks: &[SetupCheck]) -> Vec<StatusRow> {
    let current = app.orchestrator.current();
    let toolset = current.toolset();
    let model = app.options.agent.as_ref().map(|agent| agent.model());
    let mut facts = vec![
        StatusRow::new("Toolset", toolset.version.clone(), plural(toolset.ids().count() as u64, "tool")),
        StatusRow::new(
            "Model",
            model.map_or("none", Model::name),
            match model {
                None => "chat is off".to_owned(),
                Some(Model::Offline) => "quotes the knowledge base".to_owned(),
                Some(model) => format!("by {}", model.provider()),
            },
        ),
        StatusRow::new("Store", store_name(app), "sessions, calls, audit"),
    ];
    let kb = checks.iter().find(|check| check.name == "knowledge base");
    facts.extend(kb.map(|check| match check.message.split_once(" records") {
        Some((records, _)) if check.status != SetupStatus::Broken => {
            StatusRow::new("Knowledge base", records, "records")
        }
        _ => StatusRow::new("Knowledge base", "–", check.message.clone()),
    }));
    facts
}

fn finding(found: BuildFinding) -> Finding {
    let BuildFinding { is_error, code, place, message, help, source } = found;
    Finding { is_error, code, place, message: Words(message), help: help.map(Words), source }
}

fn check_row(check: &SetupCheck) -> CheckRow {
    let (tone, word) = match check.status {
        SetupStatus::Ok => (Tone::Ok, "ok"),
        SetupStatus::Missing => (Tone::Warn, "missing"),
        SetupStatus::Broken => (Tone::Bad, "broken"),
    };
    CheckRow {
        name: check.name.clone(),
        state: Chip::new(tone, word),
        message: Words(check.message.clone()),
        help: check.help.clone().map(Words),
    }
}

fn notices(app: &App, checks: &[SetupCheck]) -> Vec<Notice> {
    let broken = checks.iter().filter(|check| check.status == SetupStatus::Broken);
    let mut notices: Vec<Notice> = broken
        .map(|check| {
            let text = format!("{}. {}", check.message, check.help.as_deref().unwrap_or_default());
            Notice::new(Tone::Bad, format!("The {} does not work:", check.name), text)
        })
        .collect();
    if app.options.agent.as_ref().is_some_and(|agent| matches!(agent.model(), Model::Offline)) {
        let text =
            "The offline agent answers by quoting the knowledge base. To use one, set `[agent]`, or a key:";
        notices.push(
            Notice::new(Tone::Info, "No language model is set up.", text).with_fix("export OPENAI_API_KEY=…"),
        );
    }
    notices
}

fn store_name(app: &App) -> &'static str {
    match app.orchestrator.store() {
        Store::Memory(_) => "in memory",
        Store::Sqlite(_) => "SQLite",
        Store::Postgres(_) => "PostgreSQL",
    }
}
