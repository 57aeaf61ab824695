//! AG-UI 1.0: the encoder. A confirmation ends the run with an interrupt; the answer comes with the next run.

use serde_json::{Value, json};
use toolwright_agent::{ConfirmationPart, Event, EventBody, ToolResultPart, TurnOutcome};

use super::encode::{Encoder, INTERRUPTED, is_after, write_data};
use super::timestamp;

/// Encodes one run.
#[derive(Debug)]
pub(super) struct AguiEncoder {
    thread: String,
    run: String,
    is_started: bool,
    /// The number of the open step.
    step: Option<u32>,
    open_part: Option<OpenPart>,
    approvals: Vec<ConfirmationPart>,
    client_calls: Vec<String>,
    outcome: Option<TurnOutcome>,
}

#[derive(Debug, PartialEq, Eq)]
struct OpenPart {
    id: String,
    is_reasoning: bool,
}

impl AguiEncoder {
    pub fn new(thread: &str, run: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            run: run.to_owned(),
            is_started: false,
            step: None,
            open_part: None,
            approvals: Vec::new(),
            client_calls: Vec::new(),
            outcome: None,
        }
    }

    /// A run that fails before it begins.
    pub fn refused(mut self, code: &str, message: &str) -> String {
        let mut out = String::new();
        self.start(&mut out);
        write_data(&mut out, &json!({ "type": "RUN_ERROR", "message": message, "code": code }));
        out
    }

    fn start(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.is_started, true) {
            write_data(out, &json!({ "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run }));
        }
    }

    fn delta(&mut self, event: &Event, number: u32, is_reasoning: bool, text: &str, out: &mut String) {
        let part = OpenPart { id: format!("{}-{}-{number}", event.turn, self.run), is_reasoning };
        if self.open_part.as_ref() != Some(&part) {
            self.end_part(out);
            let id = &part.id;
            if is_reasoning {
                write_data(out, &json!({ "type": "REASONING_START", "messageId": id }));
                let start =
                    json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" });
                write_data(out, &start);
            } else {
                write_data(
                    out,
                    &json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }),
                );
            }
            self.open_part = Some(part);
        }
        let kind = if is_reasoning { "REASONING_MESSAGE_CONTENT" } else { "TEXT_MESSAGE_CONTENT" };
        if let Some(part) = self.open_part.as_ref().filter(|_| !text.is_empty()) {
            write_data(out, &json!({ "type": kind, "messageId": part.id, "delta": text }));
        }
    }

    fn end_part(&mut self, out: &mut String) {
        match self.open_part.take() {
            Some(OpenPart { id, is_reasoning: true }) => {
                write_data(out, &json!({ "type": "REASONING_MESSAGE_END", "messageId": id }));
                write_data(out, &json!({ "type": "REASONING_END", "messageId": id }));
            }
            Some(OpenPart { id, is_reasoning: false }) => {
                write_data(out, &json!({ "type": "TEXT_MESSAGE_END", "messageId": id }));
            }
            None => {}
        }
    }

    fn end_step(&mut self, out: &mut String) {
        self.end_part(out);
        if let Some(step) = self.step.take() {
            write_data(out, &json!({ "type": "STEP_FINISHED", "stepName": format!("step {step}") }));
        }
    }

    fn result(result: &ToolResultPart, out: &mut String) {
        write_data(
            out,
            &json!({ "type": "TOOL_CALL_RESULT", "messageId": format!("{}-result", result.call_id),
                "toolCallId": result.call_id, "content": result.content.to_string(), "role": "tool" }),
        );
    }

    fn finished(&self) -> Value {
        let outcome = match &self.outcome {
            Some(TurnOutcome::Stopped) => json!({ "type": "cancelled" }),
            Some(TurnOutcome::AwaitsApproval) => {
                let interrupts: Vec<Value> = self.approvals.iter().map(interrupt).collect();
                json!({ "type": "interrupt", "interrupts": interrupts })
            }
            Some(TurnOutcome::AwaitsClient) => {
                json!({ "type": "success", "pendingToolCallIds": self.client_calls })
            }
            _ => json!({ "type": "success" }),
        };
        json!({ "type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run, "outcome": outcome })
    }
}

impl Encoder for AguiEncoder {
    fn is_beyond(&self, event: &Event) -> bool {
        is_after(self.outcome.as_ref(), event)
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        self.start(out);
        match &event.body {
            EventBody::StepStarted { step, .. } => {
                self.end_step(out);
                self.step = Some(*step);
                write_data(out, &json!({ "type": "STEP_STARTED", "stepName": format!("step {step}") }));
            }
            EventBody::StepDiscarded { .. } => self.end_step(out),
            EventBody::Text { part, text } => self.delta(event, *part, false, text, out),
            EventBody::Reasoning { part, text } => self.delta(event, *part, true, text, out),
            EventBody::PartEnded { .. } => self.end_part(out),
            EventBody::ToolCalled { call, .. } => {
                self.end_part(out);
                let id = &call.id;
                let name = if call.tool.is_empty() { "unknown" } else { &call.tool };
                write_data(
                    out,
                    &json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name }),
                );
                let args = call.args.to_string();
                write_data(out, &json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": args }));
                write_data(out, &json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
                if call.is_client_tool {
                    self.client_calls.push(id.clone());
                }
            }
            EventBody::ToolFinished { result } => Self::result(result, out),
            EventBody::ApprovalRequested { approval } => self.approvals.push(approval.clone()),
            EventBody::TurnResumed => self.outcome = None,
            EventBody::TurnEnded { outcome } => self.outcome = Some(outcome.clone()),
            _ => {}
        }
    }

    fn end(&mut self, failure: Option<&str>, out: &mut String) {
        self.start(out);
        self.end_step(out);
        let error =
            |message: &str, code: &str| json!({ "type": "RUN_ERROR", "message": message, "code": code });
        let last = match (failure, &self.outcome) {
            (Some(failure), _) => error(failure, "unavailable"),
            (None, None) => error(INTERRUPTED, "interrupted"),
            (None, Some(TurnOutcome::Failed { error: failed })) => error(&failed.message, &failed.code),
            (None, Some(_)) => self.finished(),
        };
        write_data(out, &last);
    }
}

fn interrupt(approval: &ConfirmationPart) -> Value {
    json!({
        "id": approval.id, "reason": "tool_approval", "message": approval.preview, "toolCallId": approval.call_id,
        "expiresAt": timestamp(approval.expires_at),
        "responseSchema": { "type": "object", "required": ["approved"], "properties": {
            "approved": { "type": "boolean" }, "reason": { "type": "string" },
            "args": { "type": "object", "description": "Edited arguments." } } },
        "metadata": { "tool": approval.tool, "args": approval.args },
    })
}
