//! The AI SDK's UI message stream: what `useChat` reads.

use serde_json::{Value, json};
use toolwright_agent::{Event, EventBody, ToolCallPart, ToolResultPart, TurnOutcome, Usage};

use super::encode::{Encoder, INTERRUPTED, write_data, write_id};
use super::timestamp;

/// Encodes one assistant message, from its begin or from the continuation after a pause.
#[derive(Debug)]
pub(super) struct UiEncoder {
    turn: String,
    /// The id of the assistant message.
    reply: String,
    is_started: bool,
    is_step_open: bool,
    open_part: Option<OpenPart>,
    usage: Usage,
    outcome: Option<TurnOutcome>,
    /// The client has the events up to this position.
    seen: u64,
    /// The position of the last event.
    position: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenPart {
    number: u32,
    /// `text` or `reasoning`.
    kind: &'static str,
}

impl UiEncoder {
    pub fn new(turn: &str, reply: &str, seen: u64) -> Self {
        Self {
            turn: turn.to_owned(),
            reply: reply.to_owned(),
            is_started: false,
            is_step_open: false,
            open_part: None,
            usage: Usage::default(),
            outcome: None,
            seen,
            position: 0,
        }
    }

    /// The client throws its message away at a `start`, so there is one per stream.
    fn start(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.is_started, true) {
            write_data(out, &json!({ "type": "start", "messageId": self.reply }));
        }
    }

    fn delta(&mut self, number: u32, kind: &'static str, text: &str, out: &mut String) {
        let id = format!("{kind}-{number}");
        if self.open_part != Some(OpenPart { number, kind }) {
            self.end_part(out);
            self.open_part = Some(OpenPart { number, kind });
            write_data(out, &json!({ "type": format!("{kind}-start"), "id": id }));
        }
        if !text.is_empty() {
            write_data(out, &json!({ "type": format!("{kind}-delta"), "id": id, "delta": text }));
        }
    }

    fn end_part(&mut self, out: &mut String) {
        if let Some(OpenPart { number, kind }) = self.open_part.take() {
            write_data(out, &json!({ "type": format!("{kind}-end"), "id": format!("{kind}-{number}") }));
        }
    }

    fn end_step(&mut self, out: &mut String) {
        self.end_part(out);
        if std::mem::take(&mut self.is_step_open) {
            write_data(out, &json!({ "type": "finish-step" }));
        }
    }
}

impl Encoder for UiEncoder {
    fn is_beyond(&self, event: &Event) -> bool {
        *event.turn != *self.turn && matches!(event.body, EventBody::TurnStarted { .. })
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        // The result of an earlier turn's task.
        if *event.turn != *self.turn {
            return;
        }
        self.position = event.position;
        let before = out.len();
        // What the client has seen is encoded too, for the state that the rest depends on.
        if event.position - event.body.length() < self.seen {
            self.write_event(&event.body, &mut String::new());
            if let Some(rest) = event.suffix_after(self.seen) {
                self.write_event(&rest.body, out);
            }
        } else {
            self.write_event(&event.body, out);
        }
        if out.len() > before {
            write_id(out, event.position);
        }
    }

    fn end(&mut self, failure: Option<&str>, out: &mut String) {
        self.start(out);
        self.end_step(out);
        let metadata = json!({ "usage": {
            "inputTokens": self.usage.input_tokens,
            "outputTokens": self.usage.output_tokens,
            "totalTokens": self.usage.input_tokens.saturating_add(self.usage.output_tokens) } });
        let finish =
            |reason: &str| json!({ "type": "finish", "finishReason": reason, "messageMetadata": metadata });
        let error = |text: &str| json!({ "type": "error", "errorText": text });
        let last = match (failure, &self.outcome) {
            (Some(failure), _) => error(failure),
            (None, None) => error(INTERRUPTED),
            (None, Some(outcome)) => match outcome {
                TurnOutcome::Completed => finish("stop"),
                TurnOutcome::Truncated => finish("length"),
                TurnOutcome::AwaitsApproval | TurnOutcome::AwaitsClient => finish("tool-calls"),
                TurnOutcome::Stopped => json!({ "type": "abort", "reason": "stopped" }),
                TurnOutcome::Failed { error: failed } => error(&failed.message),
                _ => finish("other"),
            },
        };
        write_data(out, &last);
        write_id(out, self.position);
        out.push_str("data: [DONE]\n\n");
    }
}

impl UiEncoder {
    fn write_event(&mut self, body: &EventBody, out: &mut String) {
        self.start(out);
        match body {
            EventBody::TurnResumed => self.outcome = None,
            EventBody::StepStarted { .. } => {
                self.end_step(out);
                self.is_step_open = true;
                write_data(out, &json!({ "type": "start-step" }));
            }
            EventBody::StepDiscarded { .. } => {
                // A part that is open is dropped with the step.
                self.open_part = None;
                write_data(out, &json!({ "type": "reset-step" }));
            }
            EventBody::Text { part, text } => self.delta(*part, "text", text, out),
            EventBody::Reasoning { part, text } => self.delta(*part, "reasoning", text, out),
            EventBody::PartEnded { .. } => self.end_part(out),
            // The results of the step's calls belong to the step.
            EventBody::StepFinished { usage, .. } => {
                self.usage = self.usage + usage.unwrap_or_default();
            }
            EventBody::ToolCalled { call, .. } => {
                let mut chunk = json!({ "type": "tool-input-available" });
                chunk["toolCallId"] = call.id.clone().into();
                chunk["toolName"] = tool_name(call).into();
                chunk["input"] = call.args.clone();
                write_data(out, &chunk);
            }
            EventBody::ToolFinished { result } => write_data(out, &tool_output(result)),
            EventBody::ClientResults { results } => {
                results.iter().for_each(|result| write_data(out, &tool_output(result)));
            }
            EventBody::ApprovalRequested { approval } => write_data(
                out,
                &json!({ "type": "tool-approval-request", "approvalId": approval.id, "toolCallId": approval.call_id,
                    "approvalDescriptor": descriptor(approval) }),
            ),
            EventBody::ApprovalDecided { approval_id, approved, reason, .. } => {
                let mut chunk = json!({ "type": "tool-approval-response" });
                chunk["approvalId"] = approval_id.clone().into();
                chunk["approved"] = (*approved).into();
                if let Some(reason) = reason {
                    chunk["reason"] = reason.clone().into();
                }
                write_data(out, &chunk);
            }
            // A pause may be followed by the continuation, so the end is written when all events are read.
            EventBody::TurnEnded { outcome } => self.outcome = Some(outcome.clone()),
            _ => {}
        }
    }
}

/// A model may name no tool; the client needs a name.
fn tool_name(call: &ToolCallPart) -> &str {
    if call.tool.is_empty() { "unknown" } else { &call.tool }
}

/// The facts that a person needs to decide, without anything that would approve the call.
pub(super) fn descriptor(approval: &toolwright_agent::ConfirmationPart) -> Value {
    json!({ "preview": approval.preview, "expiresAt": timestamp(approval.expires_at), "args": approval.args,
        "confirmationId": approval.confirmation_id() })
}

pub(super) fn tool_output(result: &ToolResultPart) -> Value {
    let mut chunk = json!({ "toolCallId": result.call_id, "durationMs": result.duration_ms });
    if result.is_declined {
        chunk["type"] = "tool-output-denied".into();
    } else if result.is_error {
        chunk["type"] = "tool-output-error".into();
        chunk["errorText"] = error_text(&result.content).into();
    } else {
        chunk["type"] = "tool-output-available".into();
        chunk["output"] = output(&result.content);
    }
    chunk
}

/// The data of a successful call.
pub(super) fn output(content: &Value) -> Value {
    match content.get("data") {
        Some(data) if content["ok"] == true => data.clone(),
        _ => content.clone(),
    }
}

/// Why a call failed.
pub(super) fn error_text(content: &Value) -> String {
    content["error"].as_str().map_or_else(|| content.to_string(), str::to_owned)
}
