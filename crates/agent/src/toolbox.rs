//! The system prompt and the declared tools of a session. They have the same bytes in every turn, so that providers'
//! prompt caches hit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolwright_contract::{Category, Confirmation, Mode, SideEffects, ToolSpec};
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_providers::{Provider, View};
use toolwright_registry::prompt::compose;
use toolwright_registry::toolset::Tool;

use crate::error::Error;
use crate::request::{ClientTool, ToolAccess};
use crate::settings::AgentOptions;
use crate::turn_context::TurnContext;

/// Maximum number of cached toolboxes: one for each toolset and set of visible tools.
const MAX_CACHED: usize = 64;

/// The prompt and the tools of a request.
#[derive(Debug, Clone)]
pub(crate) struct Toolbox {
    pub system: Arc<str>,
    pub view: Arc<View>,
    pub names: Arc<[String]>,
    /// The size of prompt and tools in a request.
    pub bytes: usize,
}

/// A cache of toolboxes, by toolset and names of the visible tools.
#[derive(Debug, Default)]
pub(crate) struct ToolboxCache(Mutex<HashMap<String, Toolbox>>);

impl ToolboxCache {
    /// The toolbox of a session, with the principal of the current request.
    pub fn get(
        &self,
        orchestrator: &Orchestrator,
        runtime: &Runtime,
        session: &SessionRecord,
        provider: &'static Provider,
        options: &AgentOptions,
        additions: &TurnContext,
    ) -> Result<Toolbox, Error> {
        let tools = match additions.access {
            ToolAccess::None => Vec::new(),
            ToolAccess::Session => orchestrator.visible_tools(runtime, session),
        };
        if let Some(taken) =
            additions.client_tools.iter().find(|tool| runtime.toolset().get(&tool.name).is_some())
        {
            return Err(Error::ClientToolName(taken.name.clone()));
        }
        let key = || {
            let names: Vec<&str> = tools.iter().map(|tool| tool.spec.tool_id.as_str()).collect();
            format!("{} {}\n{}\n{}", provider.name, session.mode, session.toolset, names.join("\n"))
        };
        let is_plain = additions.client_tools.is_empty() && additions.access == ToolAccess::Session;
        let toolbox = match is_plain {
            true => self.get_or_build(key(), || build(runtime, session, provider, options, &tools, &[])),
            false => {
                let client_specs: Vec<ToolSpec> = additions.client_tools.iter().map(client_spec).collect();
                build(runtime, session, provider, options, &tools, &client_specs)
            }
        };
        Ok(match &additions.instructions {
            Some(instructions) => {
                let system = format!("{}\n{}\n", toolbox.system, instructions.trim());
                Toolbox { bytes: toolbox.bytes + instructions.len(), system: system.into(), ..toolbox }
            }
            None => toolbox,
        })
    }

    fn get_or_build(&self, key: String, build: impl FnOnce() -> Toolbox) -> Toolbox {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(&key) {
            return known.clone();
        }
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        let toolbox = build();
        cache.insert(key, toolbox.clone());
        toolbox
    }
}

fn build(
    runtime: &Runtime,
    session: &SessionRecord,
    provider: &'static Provider,
    options: &AgentOptions,
    tools: &[&Tool],
    client_specs: &[ToolSpec],
) -> Toolbox {
    let specs: Vec<&ToolSpec> = tools.iter().map(|tool| &tool.spec).chain(client_specs).collect();
    let specs = match provider.max_tools {
        Some(limit) if specs.len() > limit => {
            tracing::warn!(
                "{} accepts {limit} tools; {} are not declared",
                provider.title,
                specs.len() - limit
            );
            &specs[..limit]
        }
        _ => &specs[..],
    };
    let files = options.prompt_files.current();
    let limits = match session.mode {
        Mode::Text => options.limits,
        Mode::Voice => options.voice_limits,
    };
    let version = &runtime.toolset().version;
    let system: Arc<str> = compose(version, tools.iter().copied(), session.mode, &files, limits).into();
    let view = provider.view(specs.iter().copied());
    let bytes = system.len() + view.declarations.to_string().len();
    let names = specs.iter().map(|spec| spec.tool_id.clone()).collect();
    Toolbox { system, view: Arc::new(view), names, bytes }
}

fn client_spec(tool: &ClientTool) -> ToolSpec {
    let schema = tool.parameters.is_object().then(|| tool.parameters.clone());
    let schema = schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    utility(&tool.name, &tool.description, schema)
}

fn utility(name: &str, description: &str, json_schema: Value) -> ToolSpec {
    ToolSpec {
        tool_id: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: description.to_owned(),
        category: Category::Utility,
        side_effects: SideEffects::None,
        idempotent: true,
        requires_confirmation: Confirmation::Always(false),
        allowed_modes: Mode::ALL.to_vec(),
        latency_budget_ms: 10.into(),
        timeout_ms: None,
        execution: None,
        availability: None,
        permissions: None,
        clamp: Default::default(),
        tags: Vec::new(),
        allow: Vec::new(),
        json_schema,
        output: None,
    }
}
