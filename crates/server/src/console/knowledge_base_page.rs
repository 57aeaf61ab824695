//! `/kb`: search the knowledge base, read a record, add a text. Only admins add texts.

use std::sync::Arc;
use std::time::Instant;

use toolwright_console::format::{plural, shorten, url_part};
use toolwright_console::knowledge_base::{AddText, KnowledgeBasePage, RecordPage, SearchResult};
use toolwright_console::parts::{Chip, Choice, Code, CsrfField, Notice, Tone};
use toolwright_console::{Layout, Page};
use toolwright_contract::Mode;

use super::calls_page::text;
use super::{form, layout, page, redirect, refused_page};
use crate::knowledge_base::{KbAddError, KbHit, KbQuery, KbRecord, KbText, KnowledgeBase};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult, new_session};

/// The tool whose roles decide who may read the knowledge base.
const SEARCH: &str = "kb_search";
const RESULTS: usize = 20;
/// The most characters of a title, a snippet or a fact, and of the text of a record.
const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 1000;
const MAX_TEXT: usize = 100_000;
const MAX_QUERY_BYTES: usize = 1000;
const NAMESPACES: [(&str, &str); 3] =
    [("studio", "The team"), ("public", "Everyone"), ("personal", "Only you")];

/// Whether this user may search: as with the tool `kb_search` of the current toolset, in some mode.
pub(super) fn may_search(request: &ApiRequest<'_>) -> Result<bool, Problem> {
    let orchestrator = &request.app.orchestrator;
    let runtime = orchestrator.current();
    let tool = runtime.toolset().get(SEARCH);
    let (Some(tool), true) = (tool, request.app.options.knowledge_base.is_some()) else { return Ok(true) };
    let principal = request.principal()?;
    let may_use = |mode: &Mode| {
        let session = orchestrator.ephemeral_session(new_session(principal, *mode));
        orchestrator.is_visible(&runtime, &session, &tool.spec)
    };
    Ok(request.is_admin() || Mode::ALL.iter().any(may_use))
}

fn require_search(request: &ApiRequest<'_>) -> Result<(), Problem> {
    if may_search(request)? {
        return Ok(());
    }
    let detail = format!("The knowledge base is for users who may use the tool `{SEARCH}`.");
    Err(Problem::new(Kind::FORBIDDEN, detail))
}

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    require_search(&request)?;
    let [query, namespace, added] = request.query(["q", "namespace", "added"])?.map(text);
    let mut view = view(&request, namespace.as_deref(), None).await?;
    if let Some(added) = added.and_then(|count| count.parse().ok()) {
        let text = format!("{} can be found now.", plural(added, "record"));
        view.notices.push(Notice::new(Tone::Ok, "Added.", text));
    }
    if let (Some(query), Some(kb)) = (query, &request.app.options.knowledge_base) {
        let user = request.principal()?.id.clone();
        let namespace = namespace.unwrap_or_else(|| NAMESPACES[0].0.to_owned());
        search(&mut view, Arc::clone(kb), KbQuery { text: query, namespace, user, limit: RESULTS }).await?;
    }
    page(&view)
}

/// The page before a search; `failed` is a text that could not be added, and why.
async fn view(
    request: &ApiRequest<'_>,
    namespace: Option<&str>,
    failed: Option<(KbText, String)>,
) -> Result<KnowledgeBasePage, Problem> {
    let layout: Layout = layout(request, Page::KnowledgeBase, "Knowledge base").await?;
    let kb = request.app.options.knowledge_base.clone();
    let mut notices = Vec::new();
    let mut facts = Vec::new();
    match &kb {
        None => {
            let text = "This server was started without one.";
            notices.push(Notice::new(Tone::Info, "No knowledge base.", text));
        }
        Some(kb) => match blocking(Arc::clone(kb), |kb| kb.facts()).await? {
            Ok(known) => facts = known,
            Err(error) => notices.push(unusable(&error)),
        },
    }
    let choices = |selected: Option<&str>| -> Vec<Choice> {
        NAMESPACES.iter().map(|(value, label)| Choice::new(*value, *label, selected)).collect()
    };
    let (text, error) = failed.unzip();
    let add = (kb.is_some() && request.is_admin()).then(|| AddText {
        csrf: CsrfField(layout.csrf.clone()),
        name: text.as_ref().map(|text| text.name.clone()).unwrap_or_default(),
        text: text.as_ref().map(|text| text.text.clone()).unwrap_or_default(),
        namespaces: choices(text.as_ref().map(|text| text.namespace.as_str())),
        error,
    });
    Ok(KnowledgeBasePage {
        layout: Layout { scripts: &["upload.js"], ..layout },
        notices,
        facts,
        query: String::new(),
        namespaces: choices(namespace),
        results: None,
        summary: String::new(),
        add,
    })
}

fn unusable(error: &str) -> Notice {
    tracing::error!("the knowledge base: {error}");
    let fix = "toolwright doctor";
    Notice::new(Tone::Bad, "The knowledge base cannot be used.", "The server's log has the cause.")
        .with_fix(fix)
}

async fn search(
    view: &mut KnowledgeBasePage,
    kb: Arc<dyn KnowledgeBase>,
    query: KbQuery,
) -> Result<(), Problem> {
    view.query.clone_from(&query.text);
    if query.text.len() > MAX_QUERY_BYTES {
        let detail = format!("The search has {} bytes; the maximum is {MAX_QUERY_BYTES}.", query.text.len());
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    }
    if !NAMESPACES.iter().any(|(value, _)| *value == query.namespace) {
        let detail = format!("`namespace` must be studio, personal or public, not `{}`.", query.namespace);
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    }
    let started = Instant::now();
    match blocking(kb, move |kb| kb.search(&query)).await? {
        Ok(found) => {
            let ms = started.elapsed().as_secs_f64() * 1000.0;
            view.summary = format!(
                "{} in {} ({})",
                plural(found.hits.len() as u64, "record"),
                toolwright_console::format::duration(ms),
                found.retrieval
            );
            view.results = Some(found.hits.into_iter().map(result).collect());
        }
        Err(error) => view.notices.push(unusable(&error)),
    }
    Ok(())
}

fn result(hit: KbHit) -> SearchResult {
    SearchResult {
        href: format!("/kb/{}", url_part(&hit.id)),
        id: hit.id,
        title: shorten(&hit.title, MAX_TITLE),
        kind: shorten(&hit.kind, MAX_TITLE),
        snippet: shorten(&hit.snippet, MAX_SNIPPET),
        score: format!("{:.2}", hit.score),
        share: (hit.score.clamp(0.0, 1.0) * 100.0) as u32,
    }
}

pub(crate) async fn record(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    require_search(&request)?;
    let missing = || Problem::not_found("Record", request.parameter);
    let kb = request.app.options.knowledge_base.clone().ok_or_else(missing)?;
    let (id, user) = (request.parameter.to_owned(), request.principal()?.id.clone());
    let found = blocking(kb, move |kb| kb.record(&id, &user)).await?;
    let found = found.map_err(|error| {
        tracing::error!("the knowledge base: {error}");
        Problem::new(Kind::UNAVAILABLE, "The knowledge base cannot be used. The server's log has the cause.")
    })?;
    let KbRecord { id, kind, title, text, namespace, tags, source_type, last_updated, url, metadata } =
        found.ok_or_else(missing)?;
    let (title, text) = (shorten(&title, MAX_TITLE), shorten(&text, MAX_TEXT));
    let short = |fact: String| shorten(&fact, MAX_TITLE);
    let mut chips = vec![Chip::new(Tone::Info, short(kind)), Chip::new(Tone::Plain, namespace)];
    chips.extend(tags.into_iter().map(|tag| Chip::new(Tone::Plain, short(tag))));
    let mut facts = vec![
        ("Id", id.clone()),
        ("Source", short(source_type)),
        ("Updated", short(last_updated)),
        ("Address", short(url.unwrap_or_default())),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    let has_metadata = metadata.as_object().is_some_and(|members| !members.is_empty());
    page(&RecordPage {
        layout: layout(&request, Page::KnowledgeBase, title.clone()).await?,
        id,
        title,
        chips,
        facts,
        text,
        metadata: has_metadata.then(|| Code::json("Metadata", &metadata)),
    })
}

pub(crate) async fn add(mut request: ApiRequest<'_>) -> ApiResult {
    let form = form::read(&mut request).await?;
    let missing = || Problem::new(Kind::NOT_FOUND, "This server has no knowledge base.");
    let kb = request.app.options.knowledge_base.clone().ok_or_else(missing)?;
    let text = KbText {
        name: form.required("name")?.trim().to_owned(),
        text: form.required("text")?.replace("\r\n", "\n"),
        namespace: form.get("namespace").unwrap_or(NAMESPACES[0].0).to_owned(),
        user: request.principal()?.id.clone(),
    };
    let added = {
        let text = text.clone();
        blocking(kb, move |kb| kb.add(&text)).await?
    };
    let error = match added {
        Ok(added) if added.problems.is_empty() => {
            return Ok(redirect(&format!("/kb?added={}", added.records)));
        }
        Ok(added) => {
            let said = plural(added.records as u64, "record");
            format!("{said} added. These lines could not be read: {}", added.problems.join("; "))
        }
        Err(KbAddError::Invalid(why)) => why,
        Err(KbAddError::Failed(why)) => {
            tracing::error!("cannot add to the knowledge base: {why}");
            "The knowledge base cannot be written. The server's log has the cause.".to_owned()
        }
    };
    refused_page(&view(&request, None, Some((text, error))).await?)
}

/// Uses the knowledge base on a thread that may block.
async fn blocking<T: Send + 'static>(
    kb: Arc<dyn KnowledgeBase>,
    work: impl FnOnce(&dyn KnowledgeBase) -> T + Send + 'static,
) -> Result<T, Problem> {
    let task = tokio::task::spawn_blocking(move || work(&*kb)).await;
    task.map_err(|_| Problem::internal())
}
