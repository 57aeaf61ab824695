//! `GET /`: what runs, what is wrong, how to connect.

use toolwright_agent::Model;
use toolwright_console::format::plural;
use toolwright_console::home::{Fact, HomePage};
use toolwright_console::parts::{Notice, Tone};
use toolwright_console::recipe::recipes;
use toolwright_console::{Layout, Page};
use toolwright_orchestrator::store::Store;

use super::{base_url, layout, page};
use crate::app::App;
use crate::request::{ApiRequest, ApiResult};

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    let layout = Layout { scripts: &["home.js"], ..layout(&request, Page::Home, "Home").await? };
    let base = base_url(&request);
    let needs_key = !request.app.auth.is_open();
    let notices = notices(request.app);
    let headline =
        if notices.is_empty() { "Everything is running" } else { "Running, with something to fix" };
    page(&HomePage {
        headline: headline.to_owned(),
        subline: format!("{base} · {}", store_name(request.app)),
        facts: facts(request.app),
        recipes: recipes(&base, needs_key, None),
        notices,
        layout,
    })
}

fn facts(app: &App) -> Vec<Fact> {
    let current = app.orchestrator.current();
    let toolset = current.toolset();
    let model = app.options.agent.as_ref().map(|agent| agent.model());
    vec![
        Fact::new("Toolset", toolset.version.clone(), plural(toolset.ids().count() as u64, "tool")),
        Fact::new(
            "Model",
            model.map_or("none", Model::name),
            model.map_or("chat is off".to_owned(), |model| format!("by {}", model.provider())),
        ),
        Fact::new("Store", store_name(app), ""),
    ]
}

fn notices(app: &App) -> Vec<Notice> {
    let mut notices = Vec::new();
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
