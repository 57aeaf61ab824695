//! Shortens long histories: the oldest tool results first, then the oldest turns. A call and its result stay
//! together.
//!
//! Removes more than needed, in steps of a quarter of the limit: the shortened history is then the same for several
//! turns, so that providers' prompt caches hit.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::event::InputPart;
use crate::message::{Message, Part, Step, ToolPart};

/// Approximate number of bytes per token, in English and in JSON.
const BYTES_PER_TOKEN: usize = 4;
/// Approximate cost of a picture in tokens, whatever its size in bytes.
const TOKENS_PER_IMAGE: usize = 1000;

static REMOVED: LazyLock<Arc<Value>> = LazyLock::new(|| {
    Arc::new(
        json!({ "ok": true, "data": "[This result was removed to save space. Call the tool again if you need it.]" }),
    )
});

/// The messages, shortened so that they have about `limit` tokens together with `fixed_bytes` of prompt and tools.
pub(crate) fn trim(mut messages: Vec<Message>, fixed_bytes: usize, limit: u32) -> Vec<Message> {
    let limit = limit as usize;
    let total = fixed_bytes / BYTES_PER_TOKEN + messages.iter().map(tokens).sum::<usize>();
    if total <= limit {
        return messages;
    }
    let portion = (limit / 4).max(1);
    let to_remove = (total - limit).div_ceil(portion) * portion;
    let removed = remove_results(&mut messages, to_remove);
    if removed < to_remove {
        remove_turns(&mut messages, to_remove - removed);
    }
    messages
}

/// Replaces the oldest results, except those of the last step. Returns the number of tokens saved.
fn remove_results(messages: &mut [Message], to_remove: usize) -> usize {
    let steps = messages.iter_mut().flat_map(|message| match message {
        Message::Assistant(assistant) => assistant.steps.iter_mut().collect::<Vec<_>>(),
        Message::User(_) => Vec::new(),
    });
    let mut steps: Vec<&mut Step> = steps.collect();
    steps.pop();
    let mut removed = 0;
    for tool in steps.into_iter().flat_map(Step::tools_mut) {
        if removed >= to_remove {
            break;
        }
        let before = result_tokens(tool);
        if let Some(result) = tool.result.as_mut().filter(|_| before > TOKENS_OF_REMOVED) {
            result.content = Arc::clone(&REMOVED);
            removed += before - TOKENS_OF_REMOVED;
        }
    }
    removed
}

/// Approximate size of what replaces a removed result.
const TOKENS_OF_REMOVED: usize = 28;

/// Removes the oldest turns, but never the last one.
fn remove_turns(messages: &mut Vec<Message>, to_remove: usize) {
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let mut removed = 0;
    while removed < to_remove {
        let Some(next) = messages.iter().skip(1).position(is_user) else { return };
        removed += messages.drain(..=next).map(|message| tokens(&message)).sum::<usize>();
    }
}

/// Approximate number of tokens of a message.
fn tokens(message: &Message) -> usize {
    match message {
        Message::User(user) => user
            .parts
            .iter()
            .map(|part| match part {
                InputPart::Text { text } => text.len() / BYTES_PER_TOKEN,
                InputPart::Image { .. } => TOKENS_PER_IMAGE,
            })
            .sum(),
        Message::Assistant(assistant) => {
            assistant.steps.iter().flat_map(|step| &step.parts).map(part_tokens).sum()
        }
    }
}

fn part_tokens(part: &Part) -> usize {
    match part {
        Part::Text { text, .. } => text.len() / BYTES_PER_TOKEN,
        Part::Reasoning { provider_data, .. } => {
            provider_data.as_ref().map_or(0, |data| json_bytes(&data.value) / BYTES_PER_TOKEN)
        }
        Part::Tool(tool) => json_bytes(&tool.call.args) / BYTES_PER_TOKEN + result_tokens(tool),
    }
}

fn result_tokens(tool: &ToolPart) -> usize {
    json_bytes(tool.model_content()) / BYTES_PER_TOKEN
}

/// Approximate length of a value's JSON.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, value)| name.len() + 4 + json_bytes(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ToolCallPart, ToolResultPart, UserMessage};
    use crate::message::AssistantMessage;

    fn turn(number: usize, result_bytes: usize) -> [Message; 2] {
        let id = format!("c{number}");
        let call = ToolCallPart {
            id: id.clone(),
            tool: "kb_search".to_owned(),
            args: json!({ "query": "x" }),
            is_redacted: false,
            is_client_tool: false,
        };
        let content = Arc::new(json!({ "ok": true, "data": "r".repeat(result_bytes) }));
        let tool = "kb_search".to_owned();
        let result = ToolResultPart {
            call_id: id,
            tool,
            content,
            is_error: false,
            is_declined: false,
            duration_ms: 1,
            task: None,
        };
        let tool =
            ToolPart { call, provider_data: None, approval: None, decision: None, result: Some(result) };
        let steps = vec![
            Step { parts: vec![Part::Tool(Box::new(tool))], finish: None },
            Step { parts: vec![Part::Text { text: "t".repeat(40), provider_data: None }], finish: None },
        ];
        let reply = AssistantMessage { steps, ..AssistantMessage::default() };
        [Message::User(UserMessage::text(format!("m{number}"), "q".repeat(40))), Message::Assistant(reply)]
    }

    fn is_removed(message: &Message) -> bool {
        let Message::Assistant(assistant) = message else { return false };
        assistant.tools().any(|tool| tool.model_content() == &**REMOVED)
    }

    #[test]
    fn the_oldest_results_are_removed_first_and_then_the_oldest_turns() {
        let history: Vec<Message> = (0..4).flat_map(|number| turn(number, 4000)).collect();
        assert_eq!(trim(history.clone(), 0, 10_000), history);
        // About 4,100 tokens: one result less is enough for 3,500, in portions of 875.
        let trimmed = trim(history.clone(), 0, 3500);
        let removed: Vec<bool> = trimmed.iter().skip(1).step_by(2).map(is_removed).collect();
        assert_eq!(removed, [true, false, false, false]);
        // Without any results about 250 tokens remain, so that turns go too.
        let trimmed = trim(history.clone(), 0, 100);
        assert_eq!(trimmed.len(), 2);
        assert_eq!(trimmed[0], history[6]);
        assert!(is_removed(&trimmed[1]));
    }

    #[test]
    fn a_longer_history_is_shortened_in_the_same_way_for_several_turns() {
        let first_kept = |turns: usize| {
            let history: Vec<Message> = (0..turns).flat_map(|number| turn(number, 400)).collect();
            let trimmed = trim(history, 0, 2000);
            trimmed.iter().skip(1).step_by(2).position(|message| !is_removed(message)).unwrap_or_default()
        };
        let kept: Vec<usize> = (20..40).map(first_kept).collect();
        let changes = kept.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..8).contains(&changes), "{kept:?}");
    }
}
