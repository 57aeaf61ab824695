//! `GET /tools`: the tools that the caller may use; an admin sees all of them. The search looks at names, texts and
//! tags.

use toolwright_console::Page;
use toolwright_console::chart::Sparkline;
use toolwright_console::format::{count, duration, percent, plural, shorten, url_part};
use toolwright_console::parts::{Choice, Pager};
use toolwright_console::tool_list::{Health, ToolRow, ToolsPage};
use toolwright_contract::{Category, Mode, SideEffects, ToolSpec};
use toolwright_orchestrator::metrics::ToolMetrics;
use toolwright_registry::toolset::Tool;

use super::{layout, page};
use crate::problem::Problem;
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};
use crate::rest::audience::Audience;

const PAGE_SIZE: usize = 50;
const MAX_PAGE: u64 = 1_000_000;
/// The most characters of a summary.
const MAX_SUMMARY: usize = 300;
const SPARKLINE_POINTS: u32 = 20;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The query of the page's address.
struct Filter {
    words: String,
    category: Option<Category>,
    effects: Option<SideEffects>,
    mode: Option<Mode>,
    confirmation: Option<bool>,
    /// The number of the page, from 1.
    page: usize,
}

pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let filter = Filter::of_query(&request)?;
    let layout = layout(&request, Page::Tools, "Tools").await?;
    let audience = Audience::of_console(&request)?;
    let all = audience.tools();
    let found = filter.apply(&all);
    let first = (filter.page - 1).saturating_mul(PAGE_SIZE).min(found.len());
    let on_page = &found[first..found.len().min(first + PAGE_SIZE)];
    let orchestrator = &request.app.orchestrator;
    let ids = on_page.iter().map(|tool| tool.spec.tool_id.as_str()).collect();
    let metrics = orchestrator.tool_totals(orchestrator.now() - DAY_MS, &ids);
    let row = |tool: &&Tool| row(tool, metrics.get(&(tool.spec.tool_id.clone(), tool.spec.version.clone())));
    let toolset = audience.runtime.toolset();
    page(&ToolsPage {
        subline: format!("{} in toolset {}.", plural(all.len() as u64, "tool"), toolset.version),
        categories: Choice::words("All categories", Category::WORDS, filter.category.map(Category::as_str)),
        effects: Choice::words("All effects", SideEffects::WORDS, filter.effects.map(SideEffects::as_str)),
        modes: Choice::words("All modes", Mode::WORDS, filter.mode.map(Mode::as_str)),
        confirmations: Choice::words(
            "With or without confirmation",
            &["asks", "never"],
            filter.confirmation_word(),
        ),
        is_filtered: filter.is_set(),
        rows: on_page.iter().map(row).collect(),
        pager: filter.pager(first, on_page.len(), found.len()),
        query: filter.words,
        layout,
    })
}

impl Filter {
    fn of_query(request: &ApiRequest<'_>) -> Result<Self, Problem> {
        let [words, category, effects, mode, confirmation, page] =
            request.query(["q", "category", "effects", "mode", "confirmation", "page"])?;
        Ok(Self {
            words: words.map(|words| words.trim().to_owned()).unwrap_or_default(),
            // An unknown word filters nothing: the page shows which filters are set.
            category: category.and_then(|word| Category::from_word(&word)),
            effects: effects.and_then(|word| SideEffects::from_word(&word)),
            mode: mode.and_then(|word| Mode::from_word(&word)),
            confirmation: confirmation.filter(|word| !word.is_empty()).map(|word| word == "asks"),
            page: number("page", page.as_deref(), 1, MAX_PAGE)?.max(1) as usize,
        })
    }

    fn confirmation_word(&self) -> Option<&'static str> {
        self.confirmation.map(|asks| if asks { "asks" } else { "never" })
    }

    fn is_set(&self) -> bool {
        !self.words.is_empty()
            || self.category.is_some()
            || self.effects.is_some()
            || self.mode.is_some()
            || self.confirmation.is_some()
    }

    /// The tools that pass. With words, those whose name has them come first.
    fn apply<'t>(&self, tools: &[&'t Tool]) -> Vec<&'t Tool> {
        let words: Vec<String> = self.words.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<(bool, &Tool)> = tools
            .iter()
            .filter(|tool| self.admits(&tool.spec))
            .filter_map(|tool| Some((!in_name(tool, &words), has_words(tool, &words).then_some(*tool)?)))
            .collect();
        found.sort_by_key(|(is_elsewhere, _)| *is_elsewhere);
        found.into_iter().map(|(_, tool)| tool).collect()
    }

    fn admits(&self, spec: &ToolSpec) -> bool {
        self.category.is_none_or(|category| spec.category == category)
            && self.effects.is_none_or(|effects| spec.side_effects == effects)
            && self.mode.is_none_or(|mode| spec.allowed_modes.contains(&mode))
            && self.confirmation.is_none_or(|asks| spec.requires_confirmation.is_never() != asks)
    }

    fn pager(&self, first: usize, on_page: usize, all: usize) -> Pager {
        let summary = match all {
            0 => String::new(),
            _ => format!(
                "{}–{} of {}",
                count(first as u64 + 1),
                count((first + on_page) as u64),
                plural(all as u64, "tool")
            ),
        };
        let has_next = first + on_page < all;
        Pager {
            summary,
            first: (self.page > 2).then(|| self.path(1)),
            previous: (self.page > 1).then(|| self.path(self.page - 1)),
            next: has_next.then(|| self.path(self.page + 1)),
        }
    }

    /// The address of another page with the same filter.
    fn path(&self, page: usize) -> String {
        let parts = [
            ("q", Some(self.words.as_str()).filter(|words| !words.is_empty())),
            ("category", self.category.map(Category::as_str)),
            ("effects", self.effects.map(SideEffects::as_str)),
            ("mode", self.mode.map(Mode::as_str)),
            ("confirmation", self.confirmation_word()),
        ];
        let set = parts.iter().filter_map(|(name, value)| Some(format!("{name}={}&", url_part((*value)?))));
        format!("/tools?{}page={page}", set.collect::<String>())
    }
}

fn in_name(tool: &Tool, words: &[String]) -> bool {
    words.iter().all(|word| tool.spec.tool_id.to_lowercase().contains(word))
}

fn has_words(tool: &Tool, words: &[String]) -> bool {
    let spec = &tool.spec;
    let texts = [&spec.tool_id, &tool.summary, &spec.description];
    let texts: Vec<String> = texts.into_iter().chain(&spec.tags).map(|text| text.to_lowercase()).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}

fn row(tool: &Tool, metrics: Option<&ToolMetrics>) -> ToolRow {
    let spec = &tool.spec;
    let budget = spec.latency_budget_ms.as_f64().unwrap_or_default();
    ToolRow {
        id: spec.tool_id.clone(),
        summary: shorten(&tool.summary, MAX_SUMMARY),
        category: spec.category.as_str().to_owned(),
        effects: spec.side_effects.as_str().to_owned(),
        asks_first: !spec.requires_confirmation.is_never(),
        modes: spec.allowed_modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>().join(", "),
        version: spec.version.clone(),
        budget: duration(budget),
        health: metrics.map(|metrics| health(metrics, budget)).unwrap_or_default(),
    }
}

/// The numbers of a tool over the last day.
pub(super) fn health(metrics: &ToolMetrics, budget: f64) -> Health {
    let errors: u64 = metrics.errors.values().sum();
    let p95 = metrics.quantile(0.95);
    let shares = (1..=SPARKLINE_POINTS).map(|point| f64::from(point) / f64::from(SPARKLINE_POINTS));
    let sparkline = Sparkline {
        label: format!(
            "From the fastest to the slowest call; p95 {}, budget {}",
            duration(p95),
            duration(budget)
        ),
        values: shares.map(|share| Some(metrics.quantile(share))).collect(),
        limit: Some(budget),
    };
    Health {
        calls: count(metrics.calls),
        errors: percent(errors, metrics.calls + metrics.refusals),
        p95: if metrics.calls > 0 { duration(p95) } else { String::new() },
        is_over_budget: p95 > budget,
        sparkline: (metrics.calls > 0).then_some(sparkline),
    }
}
