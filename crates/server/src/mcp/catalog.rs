//! The MCP declarations of one toolset: made once, shared by all sessions, listed in pages. A catalog does not keep its
//! toolset loaded.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{JsonObject, PaginatedRequestParams, Tool as Declaration};
use serde_json::Value;
use toolwright_contract::{Category, ToolSpec};
use toolwright_orchestrator::{Runtime, WeakRuntime};
use toolwright_providers::mcp;

const PAGE_SIZE: usize = 100;

pub(super) struct Catalog {
    runtime: WeakRuntime,
    version: String,
    tools: Vec<CatalogTool>,
    by_name: HashMap<String, usize>,
}

pub(super) struct CatalogTool {
    pub declaration: Declaration,
    /// Its results are wrapped in a member `result`.
    pub wraps_output: bool,
    /// Its calls spend the budget of a turn.
    pub is_retrieval: bool,
    /// Some of its arguments are repeated in HTTP headers.
    pub has_headers: bool,
    pub spec: ToolSpec,
}

impl Catalog {
    pub fn new(runtime: &Runtime) -> Self {
        let toolset = runtime.toolset();
        let specs = toolset.for_models(|_| true).map(|tool| &tool.spec);
        let tools: Vec<CatalogTool> = specs.filter_map(CatalogTool::new).collect();
        let names = tools.iter().map(|tool| tool.declaration.name.to_string());
        let by_name = names.enumerate().map(|(index, name)| (name, index)).collect();
        Self { runtime: runtime.downgrade(), version: toolset.version.clone(), tools, by_name }
    }

    pub fn is_of(&self, runtime: &Runtime) -> bool {
        self.runtime.is_of(runtime)
    }

    /// Whether its toolset is still loaded.
    pub fn is_loaded(&self) -> bool {
        self.runtime.is_held()
    }

    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        self.by_name.get(name).and_then(|index| self.tools.get(*index))
    }

    /// The tools that `is_visible` accepts, in order.
    pub fn filter<'a>(
        &'a self,
        is_visible: impl Fn(&ToolSpec) -> bool + 'a,
    ) -> impl Iterator<Item = &'a CatalogTool> {
        self.tools.iter().filter(move |tool| is_visible(&tool.spec))
    }

    /// The schema that request headers are validated against, if the tool has such headers.
    pub fn header_schema(&self, name: &str) -> Option<Arc<JsonObject>> {
        let tool = self.get(name).filter(|tool| tool.has_headers)?;
        Some(Arc::clone(&tool.declaration.input_schema))
    }

    /// One page of a list, and the cursor of the next. A cursor is valid for one version of the toolset.
    pub fn page<T>(
        &self,
        params: Option<PaginatedRequestParams>,
        all: impl Iterator<Item = T>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let start = match params.and_then(|params| params.cursor) {
            None => 0,
            Some(cursor) => self.parse_cursor(&cursor)?,
        };
        let mut items: Vec<T> = all.skip(start).take(PAGE_SIZE + 1).collect();
        let next = (items.len() > PAGE_SIZE).then(|| format!("{}@{}", start + PAGE_SIZE, self.version));
        items.truncate(PAGE_SIZE);
        Ok((items, next))
    }

    fn parse_cursor(&self, cursor: &str) -> Result<usize, ErrorData> {
        let parts = cursor.split_once('@').filter(|(_, version)| *version == self.version);
        parts.and_then(|(start, _)| start.parse().ok()).ok_or_else(|| {
            let message = format!("The cursor `{cursor}` belongs to no current list: list again without it.");
            ErrorData::invalid_params(message, None)
        })
    }
}

impl CatalogTool {
    fn new(spec: &ToolSpec) -> Option<Self> {
        let declaration: Declaration = serde_json::from_value(mcp::declaration(spec)?)
            .inspect_err(|error| tracing::error!("could not declare the tool `{}`: {error}", spec.tool_id))
            .ok()?;
        Some(Self {
            has_headers: declaration.input_schema.values().any(names_header),
            declaration,
            wraps_output: mcp::wraps_output(spec),
            is_retrieval: spec.category == Category::Retrieval,
            spec: spec.clone(),
        })
    }
}

fn names_header(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("x-mcp-header") || members.values().any(names_header),
        Value::Array(items) => items.iter().any(names_header),
        _ => false,
    }
}
