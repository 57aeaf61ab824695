//! The response object of OpenAI's Responses API. Open Responses requires every key, null or not.

use serde_json::{Map, Value, json};
use toolwright_agent::Usage;

use super::openai_request::MODEL;

/// The fields of a request that its response repeats.
#[derive(Debug, Clone)]
pub(super) struct ResponseTemplate {
    pub id: String,
    /// In seconds since 1970.
    pub created_at: i64,
    pub previous_response_id: Option<String>,
    /// The request's own values, by key.
    pub echo: Map<String, Value>,
    pub is_stored: bool,
}

/// The state of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete(&'static str),
    Failed(&'static str),
}

/// A key, and its value where the request has none.
type EchoedKey = (&'static str, fn() -> Value);

/// The keys that are repeated as they are, with their defaults.
const ECHOED: &[EchoedKey] = &[
    ("instructions", || Value::Null),
    ("tool_choice", || "auto".into()),
    ("truncation", || "disabled".into()),
    ("parallel_tool_calls", || true.into()),
    ("text", || json!({ "format": { "type": "text" } })),
    ("top_p", || 1.0.into()),
    ("presence_penalty", || 0.0.into()),
    ("frequency_penalty", || 0.0.into()),
    ("top_logprobs", || 0.into()),
    ("temperature", || 1.0.into()),
    ("reasoning", || json!({ "effort": null, "summary": null })),
    ("max_output_tokens", || Value::Null),
    ("max_tool_calls", || Value::Null),
    ("service_tier", || "default".into()),
    ("metadata", || json!({})),
    ("safety_identifier", || Value::Null),
    ("prompt_cache_key", || Value::Null),
];

impl ResponseTemplate {
    /// Reads the fields that responses repeat.
    pub fn echo(body: &Value) -> Map<String, Value> {
        let keys = ECHOED.iter().map(|(key, _)| *key);
        let mut echo: Map<String, Value> = keys
            .filter_map(|key| Some((key.to_owned(), body.get(key).filter(|value| !value.is_null())?.clone())))
            .collect();
        let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        echo.insert("tools".to_owned(), tools.iter().map(declared_tool).collect());
        echo
    }

    /// The response in a state. `message` is the reason of a failure.
    pub fn object(
        &self,
        status: Status,
        output: &[Value],
        usage: Option<Usage>,
        message: &str,
        now: i64,
    ) -> Value {
        let (name, error, incomplete) = match status {
            Status::InProgress => ("in_progress", Value::Null, Value::Null),
            Status::Completed => ("completed", Value::Null, Value::Null),
            Status::Incomplete(reason) => ("incomplete", Value::Null, json!({ "reason": reason })),
            Status::Failed(code) => ("failed", json!({ "code": code, "message": message }), Value::Null),
        };
        let completed_at = if status == Status::Completed { Value::from(now) } else { Value::Null };
        let mut object = json!({
            "id": self.id, "object": "response", "created_at": self.created_at, "completed_at": completed_at,
            "status": name, "incomplete_details": incomplete, "model": MODEL,
            "previous_response_id": self.previous_response_id, "output": output, "error": error,
            "usage": usage.map(usage_object), "store": self.is_stored, "background": false,
        });
        for (key, default) in ECHOED {
            object[*key] = self.echo.get(*key).cloned().unwrap_or_else(default);
        }
        object["tools"] = self.echo.get("tools").cloned().unwrap_or_else(|| json!([]));
        object
    }
}

fn declared_tool(tool: &Value) -> Value {
    let key = |name: &str| tool.get(name).cloned().unwrap_or(Value::Null);
    json!({ "type": "function", "name": key("name"), "description": key("description"),
        "parameters": key("parameters"), "strict": tool.get("strict").cloned().unwrap_or(false.into()) })
}

fn usage_object(usage: Usage) -> Value {
    json!({ "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "input_tokens_details": { "cached_tokens": usage.cached_tokens, "cache_write_tokens": 0 },
        "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens } })
}
