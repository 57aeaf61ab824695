//! `/v1/tools`: what there is, and all about one tool.

use serde_json::{Value, json};
use toolwright_contract::suggest::{did_you_mean, nearest};
use toolwright_contract::{Category, Mode, Principal};
use toolwright_registry::toolset::Tool;

use crate::dispatch::{Answer, Asked};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::route::ADMIN;

pub(crate) fn list(asked: &Asked<'_>) -> Answer {
    let [category, mode] = asked.query(["category", "mode"])?;
    let category =
        category.map(|word| wanted("category", &word, Category::WORDS, Category::from_word)).transpose()?;
    let mode = mode.map(|word| wanted("mode", &word, Mode::WORDS, Mode::from_word)).transpose()?;
    let runtime = asked.app.orchestrator.current();
    let toolset = runtime.toolset();
    let principal = asked.principal()?;
    let fits = |tool: &&Tool| {
        may_see(principal, tool)
            && category.is_none_or(|category| tool.spec.category == category)
            && mode.is_none_or(|mode| tool.spec.allowed_modes.contains(&mode))
    };
    let tools: Vec<Value> = toolset.list().filter(fits).map(row).collect();
    Ok(json::answer(&json!({ "version": toolset.version, "tools": tools })))
}

pub(crate) fn describe(asked: &Asked<'_>) -> Answer {
    let runtime = asked.app.orchestrator.current();
    let toolset = runtime.toolset();
    let principal = asked.principal()?;
    let Some(tool) = toolset.get(asked.parameter).filter(|tool| may_see(principal, tool)) else {
        let known = toolset.list().filter(|tool| may_see(principal, tool));
        let near = nearest(asked.parameter, known.map(|tool| tool.spec.tool_id.as_str()));
        let detail = near.map(|near| format!("There is no such tool: did you mean `{near}`?"));
        return Err(Problem::new(Kind::NotFound, detail.unwrap_or("There is no such tool.".to_owned())));
    };
    let mut whole = row(tool);
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
    if let (Value::Object(whole), Value::Object(more)) = (&mut whole, more) {
        whole.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(json::answer(&whole))
}

/// Whoever operates the server sees all; others what they may use.
fn may_see(principal: &Principal, tool: &Tool) -> bool {
    principal.roles.iter().any(|role| role == ADMIN) || tool.spec.admits(&principal.roles)
}

fn row(tool: &Tool) -> Value {
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

fn wanted<T>(name: &str, word: &str, words: &[&str], from: fn(&str) -> Option<T>) -> Result<T, Problem> {
    from(word).ok_or_else(|| {
        Problem::new(Kind::BadRequest, format!("`{word}` is no {name}: {}", did_you_mean(word, words)))
    })
}
