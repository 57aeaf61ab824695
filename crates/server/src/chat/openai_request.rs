//! Shared by both of OpenAI's APIs: the model's name, tools that the client declares, side requests of chat clients.

use hyper::header::HeaderMap;
use serde_json::Value;
use toolwright_agent::{ClientTool, ToolAccess, TurnError};

use super::transcript::{Transcript, shortened};
use crate::problem::{Kind, Problem};

/// The name of the agent as a model.
pub(super) const MODEL: &str = "toolwright";
/// Chat clients send requests for titles, tags and summaries to the same model. Nothing marks them but their first
/// words.
const SIDE_REQUESTS: &[&str] = &[
    // Open WebUI.
    "### Task:",
    // LibreChat.
    "Provide a concise, 5-word-or-less title for the conversation",
    "Summarize the conversation by integrating new lines into the current summary",
];
const MAX_KEY_BYTES: usize = 200;

/// Refuses a request for another model.
pub(super) fn check_model(body: &Value) -> Result<(), Problem> {
    match body["model"].as_str() {
        Some(MODEL) => Ok(()),
        Some(other) => Err(unknown_model(other)),
        None => Err(Problem::new(
            Kind::BAD_REQUEST,
            format!("`model` is missing: send `\"model\": \"{MODEL}\"`."),
        )),
    }
}

pub(super) fn unknown_model(name: &str) -> Problem {
    let detail = format!("There is no model `{}`. This server has `{MODEL}`.", shortened(name));
    Problem::new(Kind::NOT_FOUND, detail).with_code("model_not_found")
}

/// The tools of this server that a request may use: none for titles and summaries, and for `tool_choice: "none"`.
pub(super) fn tool_access(body: &Value, transcript: &Transcript) -> ToolAccess {
    let is_side_request = transcript
        .only_text()
        .is_some_and(|text| SIDE_REQUESTS.iter().any(|begin| text.trim_start().starts_with(begin)));
    if is_side_request || body["tool_choice"] == "none" { ToolAccess::None } else { ToolAccess::Session }
}

/// The tools that the client declares and runs itself: `{type, name, …}`, or `{type, function: {name, …}}`.
pub(super) fn client_tools(body: &Value, access: ToolAccess) -> Result<Vec<ClientTool>, Problem> {
    if access == ToolAccess::None {
        return Ok(Vec::new());
    }
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(client_tool).collect()
}

fn client_tool(tool: &Value) -> Result<ClientTool, Problem> {
    let kind = tool["type"].as_str().unwrap_or("function");
    let function = tool.get("function").unwrap_or(tool);
    let (true, Some(name)) = (kind == "function", function["name"].as_str()) else {
        let detail = format!("Tools of type `{}` are not supported. Declare functions.", shortened(kind));
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    };
    let parameters = match &function["parameters"] {
        Value::Null => serde_json::json!({ "type": "object", "properties": {} }),
        parameters => parameters.clone(),
    };
    let description = function["description"].as_str().unwrap_or_default().to_owned();
    Ok(ClientTool { name: name.to_owned(), description, parameters })
}

/// The key by which a client marks repetitions of a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(header) = headers.get("idempotency-key") else { return Ok(None) };
    match header.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY_BYTES => Ok(Some(key)),
        _ => {
            let detail = format!("`idempotency-key` must have 1 to {MAX_KEY_BYTES} printable characters.");
            Err(Problem::new(Kind::BAD_REQUEST, detail))
        }
    }
}

/// The problem of a turn that failed before anything was sent.
pub(super) fn failed(error: &TurnError) -> Problem {
    let (kind, code) = match error.code.as_str() {
        "rate_limited" => (Kind::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        "context_length" => (Kind::BAD_REQUEST, "context_length_exceeded"),
        "timeout" | "unavailable" => (Kind::UNAVAILABLE, "model_unavailable"),
        code => (Kind::BAD_GATEWAY, code),
    };
    Problem::new(kind, error.message.clone()).with_code(code)
}
