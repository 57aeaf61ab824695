//! `GET /toolsets`: the stored toolsets with their sessions, and the difference between two of them. For admins.

use std::collections::BTreeSet;

use toolwright_console::Page;
use toolwright_console::diff::Diff;
use toolwright_console::format::{bytes, count, pretty};
use toolwright_console::parts::{Choice, Time};
use toolwright_console::toolsets::{ChangedTool, Comparison, ToolsetRow, ToolsetsPage};
use toolwright_orchestrator::store::{Backend, ToolsetInfo};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use super::{layout, page};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};

/// The most tools of which the differences are shown, and the most names of a list.
const MAX_CHANGED: usize = 50;
const MAX_NAMES: usize = 500;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [from, to] = request.query(["from", "to"])?;
    let orchestrator = &request.app.orchestrator;
    let mut stored = orchestrator.store().toolsets().await?;
    let (runtime, current) = orchestrator.current_version();
    if !stored.iter().any(|(info, _)| info.id == current) {
        stored.insert(0, (current_toolset_info(&runtime, &current, orchestrator.now()), 0));
    }
    let ids: Vec<String> = stored.iter().map(|(info, _)| info.id.clone()).collect();
    let before = from.as_deref().or_else(|| ids.iter().map(String::as_str).find(|id| *id != current));
    let after = to.as_deref().unwrap_or(&current);
    let choices = |selected: Option<&str>| ids.iter().map(|id| Choice::new(id, id, selected)).collect();
    let comparison = match (&from, &to) {
        (Some(from), Some(to)) => Some(compare_stored(orchestrator, from, to).await?),
        _ => None,
    };
    page(&ToolsetsPage {
        layout: layout(&request, Page::Toolsets, "Toolsets").await?,
        rows: stored.iter().map(|(info, sessions)| row(info, *sessions, &current)).collect(),
        from: choices(before),
        to: choices(Some(after)),
        comparison,
    })
}

/// The current toolset, in the moment before it is stored.
fn current_toolset_info(runtime: &Runtime, id: &str, now: i64) -> ToolsetInfo {
    let tools = u32::try_from(runtime.toolset().ids().count()).unwrap_or(u32::MAX);
    ToolsetInfo { id: id.to_owned(), created_at: now, used_at: now, tools, bytes: 0 }
}

fn row(info: &ToolsetInfo, sessions: u64, current: &str) -> ToolsetRow {
    ToolsetRow {
        id: info.id.clone(),
        is_current: info.id == current,
        tools: count(info.tools.into()),
        size: bytes(info.bytes),
        sessions,
        stored_at: Time(info.created_at),
        used_at: Time(info.used_at),
    }
}

async fn compare_stored(orchestrator: &Orchestrator, from: &str, to: &str) -> Result<Comparison, Problem> {
    let (old, new) = (load(orchestrator, from).await?, load(orchestrator, to).await?);
    Ok(Comparison { title: format!("{from} → {to}"), ..compare(old.toolset(), new.toolset()) })
}

async fn load(orchestrator: &Orchestrator, id: &str) -> Result<Runtime, Problem> {
    orchestrator.load_runtime(id).await?.ok_or_else(|| Problem::not_found("Toolset", id))
}

fn compare(old: &Toolset, new: &Toolset) -> Comparison {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (old.ids().collect(), new.ids().collect());
    let names = |ids: BTreeSet<&str>, others: &BTreeSet<&str>| -> Vec<String> {
        ids.difference(others).take(MAX_NAMES).map(|id| (*id).to_owned()).collect()
    };
    let both: Vec<&str> = before.intersection(&after).copied().collect();
    let changed: Vec<&str> = both.iter().copied().filter(|id| is_changed(id, old, new)).collect();
    Comparison {
        title: String::new(),
        counts: [
            after.len() - both.len(),
            before.len() - both.len(),
            changed.len(),
            both.len() - changed.len(),
        ]
        .map(|number| count(number as u64)),
        added: names(after.clone(), &before),
        removed: names(before, &after),
        changed: changed.iter().take(MAX_CHANGED).filter_map(|id| changes(id, old, new)).collect(),
        more_changed: changed.iter().skip(MAX_CHANGED).take(MAX_NAMES).map(|id| (*id).to_owned()).collect(),
    }
}

/// Whether a tool of both toolsets differs. Only then its texts are compared.
fn is_changed(id: &str, old: &Toolset, new: &Toolset) -> bool {
    old.get(id) != new.get(id) || old.documentation(id) != new.documentation(id)
}

/// The differences of a tool in declaration and documentation; `None` if there are none.
fn changes(id: &str, old: &Toolset, new: &Toolset) -> Option<ChangedTool> {
    let (before, after) = (old.get(id)?, new.get(id)?);
    let declaration = |spec| pretty(&serde_json::to_value(spec).unwrap_or_default());
    let documentation = |toolset: &Toolset| toolset.documentation(id).unwrap_or_default();
    let mut diffs: Vec<Diff> = Vec::new();
    diffs.extend(Diff::new("Declaration", &declaration(&before.spec), &declaration(&after.spec)));
    diffs.extend(Diff::new("Summary", &before.summary, &after.summary));
    diffs.extend(Diff::new("Documentation", &documentation(old), &documentation(new)));
    let handler = |tool| pretty(&serde_json::to_value(tool).unwrap_or_default());
    diffs.extend(Diff::new("Handler", &handler(&before.implementation), &handler(&after.implementation)));
    let versions = match before.spec.version == after.spec.version {
        true => after.spec.version.clone(),
        false => format!("{} → {}", before.spec.version, after.spec.version),
    };
    (!diffs.is_empty()).then(|| ChangedTool { id: id.to_owned(), versions, diffs })
}
