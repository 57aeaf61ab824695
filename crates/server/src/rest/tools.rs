//! `/v1/tools`: the list of tools, and one tool in full.

use serde_json::{Value, json};
use toolwright_contract::suggest::{did_you_mean, nearest};
use toolwright_contract::{Category, Mode, Principal};
use toolwright_registry::toolset::Tool;

use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};
use crate::route::ADMIN;

pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [category, mode] = request.query(["category", "mode"])?;
    let category = category
        .map(|word| parse_word("category", &word, Category::WORDS, Category::from_word))
        .transpose()?;
    let mode = mode.map(|word| parse_word("mode", &word, Mode::WORDS, Mode::from_word)).transpose()?;
    let runtime = request.app.orchestrator.current();
    let toolset = runtime.toolset();
    let principal = request.principal()?;
    let is_listed = |tool: &&Tool| {
        may_see(principal, tool)
            && category.is_none_or(|category| tool.spec.category == category)
            && mode.is_none_or(|mode| tool.spec.allowed_modes.contains(&mode))
    };
    let tools: Vec<Value> = toolset.list().filter(is_listed).map(summary).collect();
    Ok(json::response(&json!({ "version": toolset.version, "tools": tools })))
}

pub(crate) async fn describe(request: ApiRequest<'_>) -> ApiResult {
    let runtime = request.app.orchestrator.current();
    let toolset = runtime.toolset();
    let principal = request.principal()?;
    let Some(tool) = toolset.get(request.parameter).filter(|tool| may_see(principal, tool)) else {
        let known = toolset.list().filter(|tool| may_see(principal, tool));
        let near = nearest(request.parameter, known.map(|tool| tool.spec.tool_id.as_str()));
        let detail = near.map(|near| format!("There is no such tool: did you mean `{near}`?"));
        return Err(Problem::new(Kind::NOT_FOUND, detail.unwrap_or("There is no such tool.".to_owned())));
    };
    let mut described = summary(tool);
    let spec = &tool.spec;
    let more = json!({
        "timeoutMs": spec.timeout_ms,
        "execution": spec.execution,
        "availability": spec.availability,
        "permissions": spec.permissions,
        "clamp": spec.clamp,
        "parameters": spec.json_schema,
        "output": spec.output,
        "documentation": toolset.documentation(&spec.tool_id),
    });
    if let (Value::Object(described), Value::Object(more)) = (&mut described, more) {
        described.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(json::response(&described))
}

/// Admins see all tools; others those that they may use.
fn may_see(principal: &Principal, tool: &Tool) -> bool {
    principal.roles.iter().any(|role| role == ADMIN) || tool.spec.admits(&principal.roles)
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

fn parse_word<T>(name: &str, word: &str, words: &[&str], from: fn(&str) -> Option<T>) -> Result<T, Problem> {
    from(word).ok_or_else(|| {
        Problem::new(
            Kind::BAD_REQUEST,
            format!("`{word}` is not a valid `{name}`: {}", did_you_mean(word, words)),
        )
    })
}
