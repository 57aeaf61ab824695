//! The offline agent: not a language model, and its answers say so. Quotes the results of `kb_search`, and runs
//! `/tool_name {json}`.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use toolwright_contract::join_sentences;
use toolwright_contract::suggest::did_you_mean;
use toolwright_providers::{Call, InvalidArguments, PROVIDERS, Provider};

use crate::event::{FinishReason, ToolCallPart};
use crate::message::{AssistantMessage, Message, ToolPart};
use crate::model::{ModelEvent, ModelRequest};

pub(crate) const NAME: &str = "offline";
const SEARCH: &str = "kb_search";
/// Maximum length of a query that `kb_search` accepts.
const MAX_QUERY_CHARS: usize = 200;
/// Maximum length of a quoted result.
const MAX_RESULT_BYTES: usize = 8 << 10;
const NOTICE: &str = "I am the offline agent, not a language model";

/// The events of one response.
#[derive(Debug)]
pub(crate) struct OfflineStep(VecDeque<ModelEvent>);

impl OfflineStep {
    pub fn next(&mut self) -> Option<ModelEvent> {
        self.0.pop_front()
    }

    fn text(text: String) -> Self {
        let finished = ModelEvent::Finished { finish: FinishReason::Stop, usage: None };
        Self([ModelEvent::Text(text), ModelEvent::PartEnded(None), finished].into())
    }

    fn call(name: &str, arguments: Result<Value, InvalidArguments>) -> Self {
        let call = Call { id: None, name: name.to_owned(), arguments };
        let finished = ModelEvent::Finished { finish: FinishReason::ToolCalls, usage: None };
        Self([ModelEvent::Call { call, provider_data: None }, finished].into())
    }
}

/// Only the names of the tools are used, so any declaration form works.
pub(crate) fn view_provider() -> &'static Provider {
    &PROVIDERS[0]
}

/// The next response: first a call, then its result.
pub(crate) fn answer(request: &ModelRequest) -> OfflineStep {
    let user = request.messages.iter().rev().find_map(|message| match message {
        Message::User(user) => Some(user.to_text()),
        Message::Assistant(_) => None,
    });
    let question = user.unwrap_or_default();
    let question = question.trim();
    if let Some(Message::Assistant(AssistantMessage { steps, .. })) = request.messages.last()
        && let Some(tool) = steps.iter().rev().find_map(|step| step.tools().last())
    {
        return OfflineStep::text(result_text(tool));
    }
    match question.strip_prefix('/') {
        Some(command) => run_command(command, &request.tools),
        None if request.tools.iter().any(|tool| tool == SEARCH) => {
            let query: String = question.chars().take(MAX_QUERY_CHARS).collect();
            OfflineStep::call(SEARCH, Ok(json!({ "query": query })))
        }
        None => OfflineStep::text(format!(
            "{NOTICE}: I cannot answer questions, and there is no `{SEARCH}` to quote from. Run a tool with \
             `/tool_name {{json}}`; there are {}. To talk to a model, set `[agent] provider` and `model`.",
            names(&request.tools)
        )),
    }
}

/// Parses `/tool_name {json}`; the arguments are optional.
fn run_command(command: &str, tools: &[String]) -> OfflineStep {
    let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    if !tools.iter().any(|tool| tool == name) {
        let suggestion = did_you_mean(name, &tools.iter().map(String::as_str).collect::<Vec<_>>());
        return OfflineStep::text(format!("{NOTICE}. There is no tool `{name}`: {suggestion}"));
    }
    let arguments = match arguments.trim() {
        "" => Ok(Value::Object(Map::new())),
        text => serde_json::from_str(text).map_err(|error| InvalidArguments {
            text: text.to_owned(),
            reason: format!("not JSON: {error}"),
        }),
    };
    OfflineStep::call(name, arguments)
}

fn names(tools: &[String]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn result_text(tool: &ToolPart) -> String {
    let content = tool.model_content();
    let ToolCallPart { tool: name, .. } = &tool.call;
    if content["ok"] != true {
        let error = content["error"].as_str().unwrap_or("it has no result");
        let text = format!("{NOTICE}. `{name}` failed: {error}");
        return join_sentences([text.as_str()].into_iter().chain(content["suggestion"].as_str()));
    }
    match content.pointer("/data/results").and_then(Value::as_array).filter(|_| name == SEARCH) {
        Some(results) => evidence(results),
        None => {
            let mut data = serde_json::to_string_pretty(&content["data"]).unwrap_or_default();
            if data.len() > MAX_RESULT_BYTES {
                data.truncate(data.floor_char_boundary(MAX_RESULT_BYTES));
                data.push_str("\n…");
            }
            format!("`{name}` returned:\n\n```json\n{data}\n```")
        }
    }
}

/// Quotes the results, with ids.
fn evidence(results: &[Value]) -> String {
    if results.is_empty() {
        return format!("{NOTICE}: I only quote the knowledge base, and it has nothing on this.");
    }
    let mut text = format!("{NOTICE}: I quote what the knowledge base says.");
    for result in results {
        let field = |name: &str| result[name].as_str().unwrap_or_default().trim();
        // Writing to a String cannot fail.
        let _ = write!(text, "\n\n**{}** [{}]", field("title"), field("id"));
        if !field("snippet").is_empty() {
            let _ = write!(text, "\n> {}", field("snippet").replace('\n', "\n> "));
        }
        if !field("url").is_empty() {
            let _ = write!(text, "\n{}", field("url"));
        }
    }
    text
}
