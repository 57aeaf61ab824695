//! `/v1/tools`: the tools that the caller or one of its sessions may use, and one tool in full.

use serde_json::{Value, json};
use toolwright_contract::suggest::{did_you_mean, nearest};
use toolwright_contract::{Category, Mode, ToolSpec};
use toolwright_providers::{PROVIDERS, Provider, provider};
use toolwright_registry::toolset::Tool;

use super::audience::Audience;
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [category, mode, provider, session, all] =
        request.query(["category", "mode", "provider", "sessionId", "all"])?;
    let category = category
        .map(|word| parse_word("category", &word, Category::WORDS, Category::from_word))
        .transpose()?;
    let provider = provider.map(|name| parse_provider(&name)).transpose()?;
    let audience = Audience::of_query(&request, mode.as_deref(), session.as_deref(), all.as_deref()).await?;
    let is_wanted = |tool: &&Tool| category.is_none_or(|category| tool.spec.category == category);
    let tools = audience.tools();
    let wanted = tools.into_iter().filter(is_wanted);
    let version = &audience.runtime.toolset().version;
    Ok(json::response(&match provider {
        Some(provider) => {
            let view = provider.view(wanted.map(|tool| &tool.spec));
            json!({ "version": version, "provider": provider.name, "tools": view.declarations, "losses": view.losses })
        }
        None => json!({ "version": version, "tools": wanted.map(summary).collect::<Vec<_>>() }),
    }))
}

pub(crate) async fn describe(request: ApiRequest<'_>) -> ApiResult {
    let [session, all] = request.query(["sessionId", "all"])?;
    let audience = Audience::of_query(&request, None, session.as_deref(), all.as_deref()).await?;
    let tools = audience.tools();
    let tool = find(&tools, request.parameter)?;
    let mut described = summary(tool);
    let spec = &tool.spec;
    let documentation = audience.runtime.toolset().documentation(&spec.tool_id);
    if let (Value::Object(described), Value::Object(more)) = (&mut described, details(spec, documentation)) {
        described.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(json::response(&described))
}

/// The tool with this id, or a problem that suggests the nearest one.
pub(crate) fn find<'t>(tools: &[&'t Tool], id: &str) -> Result<&'t Tool, Problem> {
    tools.iter().find(|tool| tool.spec.tool_id == id).copied().ok_or_else(|| {
        let problem = Problem::not_found("Tool", id);
        match nearest(id, tools.iter().map(|tool| tool.spec.tool_id.as_str())) {
            Some(near) => problem.help(&format!("Did you mean `{near}`?")),
            None => problem,
        }
    })
}

fn details(spec: &ToolSpec, documentation: Option<String>) -> Value {
    json!({
        "timeoutMs": spec.timeout_ms,
        "execution": spec.execution,
        "availability": spec.availability,
        "permissions": spec.permissions,
        "clamp": spec.clamp,
        "parameters": spec.json_schema,
        "output": spec.output,
        "documentation": documentation.unwrap_or_else(|| spec.description.clone()),
    })
}

fn summary(tool: &Tool) -> Value {
    let spec = &tool.spec;
    json!({
        "toolId": spec.tool_id,
        "version": spec.version,
        "summary": tool.summary,
        "description": spec.description,
        "category": spec.category,
        "sideEffects": spec.side_effects,
        "idempotent": spec.idempotent,
        "allowedModes": spec.allowed_modes,
        "requiresConfirmation": spec.requires_confirmation,
        "latencyBudgetMs": spec.latency_budget_ms,
        "tags": spec.tags,
    })
}

pub(super) fn parse_provider(name: &str) -> Result<&'static Provider, Problem> {
    provider(name).map_err(|_| {
        let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        let detail = format!("`{name}` is not a valid `provider`: {}", did_you_mean(name, &names));
        Problem::new(Kind::BAD_REQUEST, detail)
    })
}

pub(crate) fn parse_mode(word: &str) -> Result<Mode, Problem> {
    parse_word("mode", word, Mode::WORDS, Mode::from_word)
}

fn parse_word<T>(name: &str, word: &str, words: &[&str], from: fn(&str) -> Option<T>) -> Result<T, Problem> {
    from(word).ok_or_else(|| {
        Problem::new(
            Kind::BAD_REQUEST,
            format!("`{word}` is not a valid `{name}`: {}", did_you_mean(word, words)),
        )
    })
}
