//! The declarations of one toolset: made once, shared by all who ask, in pages. They do not keep the toolset itself.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{JsonObject, PaginatedRequestParams, Tool as Declaration};
use serde_json::Value;
use toolwright_contract::{Category, Mode, Principal};
use toolwright_orchestrator::{DESCRIBE, Runtime, WeakRuntime};

use super::declare::{self, Declared};

/// Declarations in one answer.
pub(super) const PAGE: usize = 100;

/// What is declared of one toolset.
pub(super) struct Catalog {
    of: WeakRuntime,
    version: String,
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
}

/// One tool.
pub(super) struct Row {
    pub tool: Declaration,
    /// Its data goes below a member of its own.
    pub wraps: bool,
    /// Each call is a turn: MCP does not tell turns.
    pub is_retrieval: bool,
    /// Some of its arguments are repeated in headers.
    pub has_headers: bool,
    modes: Vec<Mode>,
    roles: Vec<String>,
}

impl Catalog {
    pub fn new(runtime: &Runtime) -> Self {
        let mut rows: Vec<Row> = runtime.toolset().list().map(|tool| row(&tool.spec)).collect();
        if runtime.toolset().get(DESCRIBE).is_none() {
            let Declared { tool, wraps } = declare::describe();
            let modes = vec![Mode::Text, Mode::Voice];
            rows.push(Row { tool, wraps, is_retrieval: false, has_headers: false, modes, roles: Vec::new() });
        }
        let by_name = rows.iter().enumerate().map(|(at, row)| (row.tool.name.to_string(), at)).collect();
        let version = runtime.toolset().version.clone();
        Self { of: runtime.downgrade(), version, rows, by_name }
    }

    pub fn is_of(&self, runtime: &Runtime) -> bool {
        self.of.is_of(runtime)
    }

    /// Whether anybody still has its toolset. A catalog alone does not keep it.
    pub fn is_wanted(&self) -> bool {
        self.of.is_held()
    }

    pub fn get(&self, name: &str) -> Option<&Row> {
        self.by_name.get(name).and_then(|at| self.rows.get(*at))
    }

    /// The tools that a session may use.
    pub fn visible<'a>(&'a self, mode: Mode, principal: &'a Principal) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.is_for(mode, principal))
    }

    /// The schema that headers are compared with, if they have to be.
    pub fn schema_of_headers(&self, name: &str) -> Option<Arc<JsonObject>> {
        let row = self.get(name).filter(|row| row.has_headers)?;
        Some(Arc::clone(&row.tool.input_schema))
    }

    /// One page of a list, and where the next one begins. A cursor is good for one toolset.
    pub fn page<T>(
        &self,
        asked: Option<PaginatedRequestParams>,
        all: impl Iterator<Item = T>,
    ) -> Result<(Vec<T>, Option<String>), ErrorData> {
        let version = &self.version;
        let from = match asked.and_then(|asked| asked.cursor) {
            None => 0,
            Some(cursor) => cursor
                .split_once('@')
                .filter(|(_, of)| of == version)
                .and_then(|(from, _)| from.parse::<usize>().ok())
                .ok_or_else(|| {
                    ErrorData::invalid_params("This cursor is of no current list: begin again.", None)
                })?,
        };
        let mut items: Vec<T> = all.skip(from).take(PAGE + 1).collect();
        let next = (items.len() > PAGE).then(|| format!("{}@{version}", from + PAGE));
        items.truncate(PAGE);
        Ok((items, next))
    }
}

impl Row {
    /// Whether a session of this mode and principal may use it.
    pub fn is_for(&self, mode: Mode, principal: &Principal) -> bool {
        let may = self.roles.is_empty() || self.roles.iter().any(|role| principal.roles.contains(role));
        may && self.modes.contains(&mode)
    }
}

fn row(spec: &toolwright_contract::ToolSpec) -> Row {
    let Declared { tool, wraps } = declare::declare(spec);
    Row {
        has_headers: tool.input_schema.values().any(names_a_header),
        tool,
        wraps,
        is_retrieval: spec.category == Category::Retrieval,
        modes: spec.allowed_modes.clone(),
        roles: spec.permissions.as_ref().map(|permissions| permissions.roles.clone()).unwrap_or_default(),
    }
}

fn names_a_header(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("x-mcp-header") || members.values().any(names_a_header)
        }
        Value::Array(items) => items.iter().any(names_a_header),
        _ => false,
    }
}
