//! A conversation as UI messages, for a page after a reload.

use serde_json::{Value, json};
use toolwright_agent::{AssistantMessage, InputPart, Message, Part, ToolPart, TurnOutcome, UserMessage};

use super::ui::{descriptor, error_text, output};

/// All messages.
pub(super) fn messages(history: &[Message]) -> Vec<Value> {
    let messages = history.iter().filter_map(|message| match message {
        Message::User(message) => Some(user_message(message)),
        // The client adds the answer itself when it begins.
        Message::Assistant(reply) if reply.steps.is_empty() => None,
        Message::Assistant(reply) => Some(assistant_message(reply)),
        _ => None,
    });
    messages.collect()
}

fn user_message(message: &UserMessage) -> Value {
    let parts: Vec<Value> = message.parts.iter().filter_map(input_part).collect();
    json!({ "id": message.id, "role": "user", "parts": parts })
}

fn input_part(part: &InputPart) -> Option<Value> {
    match part {
        InputPart::Text { text } => Some(json!({ "type": "text", "text": text })),
        InputPart::Image { url } => {
            let media_type = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
            let media_type = media_type.filter(|name| !name.is_empty()).unwrap_or("image/*");
            Some(json!({ "type": "file", "mediaType": media_type, "url": url }))
        }
        _ => None,
    }
}

fn assistant_message(reply: &AssistantMessage) -> Value {
    let is_running = reply.outcome.is_none();
    let mut parts = Vec::new();
    for step in &reply.steps {
        parts.push(json!({ "type": "step-start" }));
        let state = if is_running && step.finish.is_none() { "streaming" } else { "done" };
        parts.extend(step.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(json!({ "type": "text", "text": text, "state": state })),
            Part::Reasoning { text, .. } => {
                Some(json!({ "type": "reasoning", "text": text, "state": state }))
            }
            Part::Tool(tool) => Some(tool_part(tool, reply.outcome.as_ref())),
            _ => None,
        }));
    }
    json!({ "id": reply.id, "role": "assistant", "parts": parts })
}

fn tool_part(tool: &ToolPart, outcome: Option<&TurnOutcome>) -> Value {
    let name = if tool.call.tool.is_empty() { "unknown" } else { &tool.call.tool };
    let mut part =
        json!({ "type": format!("tool-{name}"), "toolCallId": tool.call.id, "input": tool.call.args });
    if let Some(approval) = &tool.approval {
        part["approval"] = json!({ "id": approval.id, "descriptor": descriptor(approval) });
        if let Some(decision) = &tool.decision {
            part["approval"]["approved"] = decision.approved.into();
            if let Some(reason) = &decision.reason {
                part["approval"]["reason"] = reason.clone().into();
            }
        }
    }
    if let Some(result) = &tool.result {
        part["durationMs"] = result.duration_ms.into();
    }
    let is_over = matches!(outcome, Some(outcome) if !outcome.is_pause());
    match &tool.result {
        Some(result) if result.is_declined => {
            part["state"] = "output-denied".into();
            part["approval"]["id"] = tool.approval.as_ref().map_or("", |approval| &approval.id).into();
            part["approval"]["approved"] = false.into();
        }
        Some(result) if result.is_error => {
            part["state"] = "output-error".into();
            part["errorText"] = error_text(&result.content).into();
        }
        Some(result) => {
            part["state"] = "output-available".into();
            part["output"] = output(&result.content);
        }
        None if tool.awaits_approval() => part["state"] = "approval-requested".into(),
        None if tool.decision.is_some() => part["state"] = "approval-responded".into(),
        None if is_over => {
            part["state"] = "output-error".into();
            part["errorText"] = "The turn ended before this call had a result.".into();
        }
        None => part["state"] = "input-available".into(),
    }
    if tool.decision.is_none() && part["state"] != "approval-requested" {
        // The schema of finished calls knows decided approvals only.
        part.as_object_mut().map(|part| part.remove("approval"));
    }
    part
}
