//! `POST /v1/responses`: the encoder. A call that the server runs is two output items, the call and its output; it is
//! written when its result is known, because a call without output would be run by the client.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolwright_agent::{
    ConfirmationPart, Event, EventBody, ToolCallPart, ToolResultPart, TurnOutcome, Usage,
};

use super::encode::{Encoder, INTERRUPTED, is_after};
use super::pending_text;
use super::response_object::{ResponseTemplate, Status};

/// The id of an approval request begins with it; the id of our approval follows.
pub(super) const APPROVAL_PREFIX: &str = "mcpr_";
const SERVER_LABEL: &str = "toolwright";

/// Encodes one response: as events, and as a whole.
#[derive(Debug)]
pub(super) struct ResponseEncoder {
    template: ResponseTemplate,
    sequence: u64,
    is_started: bool,
    output: Vec<Value>,
    /// The calls of the turn, by id.
    calls: HashMap<String, ToolCallPart>,
    open: Option<OpenItem>,
    approvals: Vec<ConfirmationPart>,
    usage: Usage,
    outcome: Option<TurnOutcome>,
    /// The time of the last event, in seconds since 1970.
    now: i64,
    /// The response as a whole, once it has ended.
    pub whole: Value,
}

/// An item whose text is being written.
#[derive(Debug)]
struct OpenItem {
    part: u32,
    is_reasoning: bool,
    id: String,
    text: String,
}

impl ResponseEncoder {
    /// `calls` are the calls of the turn before this response.
    pub fn new(template: ResponseTemplate, calls: HashMap<String, ToolCallPart>) -> Self {
        let now = template.created_at;
        Self {
            template,
            sequence: 0,
            is_started: false,
            output: Vec::new(),
            calls,
            open: None,
            approvals: Vec::new(),
            usage: Usage::default(),
            outcome: None,
            now,
            whole: Value::Null,
        }
    }

    fn write(&mut self, name: &str, mut data: Value, out: &mut String) {
        data["type"] = name.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        out.push_str("event: ");
        out.push_str(name);
        out.push_str("\ndata: ");
        out.push_str(&data.to_string());
        out.push_str("\n\n");
    }

    fn start(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.is_started, true) {
            let object = self.template.object(Status::InProgress, &[], None, "", self.now);
            self.write("response.created", json!({ "response": object }), out);
            self.write("response.in_progress", json!({ "response": object }), out);
        }
    }

    fn item_id(&self, prefix: &str) -> String {
        let response = self.template.id.trim_start_matches("resp_");
        format!("{prefix}_{response}_{}", self.output.len())
    }

    /// An item without parts of its own.
    fn item(&mut self, item: Value, out: &mut String) {
        self.end_item(out);
        let index = self.output.len();
        self.write("response.output_item.added", json!({ "output_index": index, "item": item }), out);
        self.write("response.output_item.done", json!({ "output_index": index, "item": item }), out);
        self.output.push(item);
    }

    fn call_item(&mut self, call: &ToolCallPart, out: &mut String) {
        self.end_item(out);
        let (index, id, arguments) = (self.output.len(), self.item_id("fc"), call.args.to_string());
        let item = |arguments: &str, status: &str| {
            json!({ "type": "function_call", "id": id, "call_id": call.id, "name": call.tool,
                "arguments": arguments, "status": status })
        };
        let at = json!({ "item_id": id, "output_index": index });
        let with = |key: &str, value: &str| {
            let mut data = at.clone();
            data[key] = value.into();
            data
        };
        let added = json!({ "output_index": index, "item": item("", "in_progress") });
        self.write("response.output_item.added", added, out);
        self.write("response.function_call_arguments.delta", with("delta", &arguments), out);
        let mut done = with("arguments", &arguments);
        done["name"] = call.tool.clone().into();
        self.write("response.function_call_arguments.done", done, out);
        let item = item(&arguments, "completed");
        self.write("response.output_item.done", json!({ "output_index": index, "item": item }), out);
        self.output.push(item);
    }

    fn result(&mut self, result: &ToolResultPart, out: &mut String) {
        // A call that was declined did not run.
        if result.is_declined {
            return;
        }
        let Some(call) = self.calls.get(&result.call_id).cloned() else { return };
        if call.is_client_tool {
            return;
        }
        self.call_item(&call, out);
        let text = result.content.to_string();
        let item = json!({ "type": "function_call_output", "id": self.item_id("fco"), "call_id": call.id,
            "status": "completed", "output": [{ "type": "input_text", "text": text }] });
        self.item(item, out);
    }

    fn delta(&mut self, part: u32, is_reasoning: bool, text: &str, out: &mut String) {
        let is_open = |open: &OpenItem| open.part == part && open.is_reasoning == is_reasoning;
        if !self.open.as_ref().is_some_and(is_open) {
            self.end_item(out);
            self.begin_item(part, is_reasoning, out);
        }
        let index = self.output.len();
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let mut data = json!({ "item_id": open.id, "output_index": index, "delta": text });
        if is_reasoning {
            data["summary_index"] = 0.into();
            self.write("response.reasoning_summary_text.delta", data, out);
        } else {
            data["content_index"] = 0.into();
            data["logprobs"] = json!([]);
            self.write("response.output_text.delta", data, out);
        }
    }

    fn begin_item(&mut self, part: u32, is_reasoning: bool, out: &mut String) {
        let id = self.item_id(if is_reasoning { "rs" } else { "msg" });
        let at = json!({ "item_id": id, "output_index": self.output.len() });
        let (item, begin, mut data) = if is_reasoning {
            let item = json!({ "type": "reasoning", "id": id, "summary": [] });
            let mut data = at;
            data["summary_index"] = 0.into();
            (item, "response.reasoning_summary_part.added", data)
        } else {
            let mut data = at;
            data["content_index"] = 0.into();
            (message_item(&id, "in_progress", None), "response.content_part.added", data)
        };
        data["part"] = text_part(is_reasoning, "");
        let added = json!({ "output_index": self.output.len(), "item": item });
        self.write("response.output_item.added", added, out);
        self.write(begin, data, out);
        self.open = Some(OpenItem { part, is_reasoning, id, text: String::new() });
    }

    fn end_item(&mut self, out: &mut String) {
        let Some(OpenItem { is_reasoning, id, text, .. }) = self.open.take() else { return };
        let index = self.output.len();
        let part = text_part(is_reasoning, &text);
        let key = if is_reasoning { "summary_index" } else { "content_index" };
        let mut at = json!({ "item_id": id, "output_index": index });
        at[key] = 0.into();
        let mut done = at.clone();
        done["text"] = text.into();
        at["part"] = part.clone();
        let item = if is_reasoning {
            self.write("response.reasoning_summary_text.done", done, out);
            self.write("response.reasoning_summary_part.done", at, out);
            json!({ "type": "reasoning", "id": id, "summary": [part] })
        } else {
            done["logprobs"] = json!([]);
            self.write("response.output_text.done", done, out);
            self.write("response.content_part.done", at, out);
            message_item(&id, "completed", Some(part))
        };
        self.write("response.output_item.done", json!({ "output_index": index, "item": item }), out);
        self.output.push(item);
    }

    fn status(&self, failure: Option<&str>) -> (Status, String) {
        let failed = |message: &str| (Status::Failed("server_error"), message.to_owned());
        match (failure, &self.outcome) {
            (Some(failure), _) => failed(failure),
            (None, None) => failed(INTERRUPTED),
            (None, Some(outcome)) => match outcome {
                TurnOutcome::Truncated | TurnOutcome::StepLimit { .. } => {
                    (Status::Incomplete("max_output_tokens"), String::new())
                }
                TurnOutcome::Stopped => failed("The turn was stopped."),
                TurnOutcome::Failed { error } if error.code == "rate_limited" => {
                    (Status::Failed("rate_limit_exceeded"), error.message.clone())
                }
                TurnOutcome::Failed { error } => failed(&error.message),
                _ => (Status::Completed, String::new()),
            },
        }
    }
}

impl Encoder for ResponseEncoder {
    fn is_beyond(&self, event: &Event) -> bool {
        is_after(self.outcome.as_ref(), event)
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        self.start(out);
        self.now = event.at / 1000;
        match &event.body {
            EventBody::Text { part, text } => self.delta(*part, false, text, out),
            EventBody::Reasoning { part, text } => self.delta(*part, true, text, out),
            EventBody::PartEnded { .. } | EventBody::StepDiscarded { .. } => self.end_item(out),
            EventBody::StepFinished { usage, .. } => self.usage = self.usage + usage.unwrap_or_default(),
            EventBody::ToolCalled { call, .. } => {
                self.calls.insert(call.id.clone(), call.clone());
                if call.is_client_tool {
                    self.call_item(call, out);
                }
            }
            EventBody::ToolFinished { result } => self.result(result, out),
            EventBody::ApprovalRequested { approval } => {
                let item = json!({ "type": "mcp_approval_request", "id": format!("{APPROVAL_PREFIX}{}", approval.id),
                    "name": approval.tool, "arguments": approval.args.to_string(), "server_label": SERVER_LABEL });
                self.item(item, out);
                self.approvals.push(approval.clone());
            }
            EventBody::TurnResumed => self.outcome = None,
            EventBody::TurnEnded { outcome } => self.outcome = Some(outcome.clone()),
            _ => {}
        }
    }

    fn end(&mut self, failure: Option<&str>, out: &mut String) {
        self.start(out);
        self.end_item(out);
        // No chat client shows approval requests.
        if self.outcome == Some(TurnOutcome::AwaitsApproval) {
            let texts: Vec<String> = self.approvals.iter().map(pending_text).collect();
            self.delta(u32::MAX, false, &texts.join("\n\n"), out);
            self.end_item(out);
        }
        let (status, message) = self.status(failure);
        self.whole = self.template.object(status, &self.output, Some(self.usage), &message, self.now);
        let name = match status {
            Status::Failed(_) => "response.failed",
            Status::Incomplete(_) => "response.incomplete",
            _ => "response.completed",
        };
        let data = json!({ "response": self.whole });
        self.write(name, data, out);
    }
}

fn message_item(id: &str, status: &str, part: Option<Value>) -> Value {
    let content: Vec<Value> = part.into_iter().collect();
    json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": content })
}

fn text_part(is_reasoning: bool, text: &str) -> Value {
    match is_reasoning {
        true => json!({ "type": "summary_text", "text": text }),
        false => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }),
    }
}
