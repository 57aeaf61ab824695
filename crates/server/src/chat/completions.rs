//! `POST /v1/chat/completions`: the encoder. Calls that the server runs are not shown: clients would run them again.

use serde_json::{Value, json};
use toolwright_agent::{Event, EventBody, TurnOutcome, Usage};

use super::encode::{Encoder, INTERRUPTED, is_after, write_data};
use super::openai_request::MODEL;
use super::pending_text;

/// Encodes one answer: as chunks, and as a whole.
#[derive(Debug)]
pub(super) struct CompletionEncoder {
    id: String,
    /// In seconds since 1970.
    created: i64,
    includes_usage: bool,
    is_started: bool,
    text_part: Option<u32>,
    content: String,
    reasoning: String,
    tool_calls: Vec<Value>,
    usage: Usage,
    outcome: Option<TurnOutcome>,
    /// The response as a whole, once it has ended.
    pub failure: Option<String>,
}

impl CompletionEncoder {
    pub fn new(id: String, created: i64, includes_usage: bool) -> Self {
        Self {
            id,
            created,
            includes_usage,
            is_started: false,
            text_part: None,
            content: String::new(),
            reasoning: String::new(),
            tool_calls: Vec::new(),
            usage: Usage::default(),
            outcome: None,
            failure: None,
        }
    }

    fn chunk(&mut self, delta: &Value, finish: Option<&str>, out: &mut String) {
        if !std::mem::replace(&mut self.is_started, true) {
            self.chunk(&json!({ "role": "assistant", "content": "" }), None, out);
        }
        let choices = json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]);
        write_data(out, &self.object("chat.completion.chunk", choices));
    }

    fn object(&self, kind: &str, choices: Value) -> Value {
        json!({ "id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices })
    }

    fn text(&mut self, text: &str, out: &mut String) {
        self.content.push_str(text);
        self.chunk(&json!({ "content": text }), None, out);
    }

    fn usage(&self) -> Value {
        let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = self.usage;
        json!({ "prompt_tokens": input_tokens, "completion_tokens": output_tokens,
            "total_tokens": input_tokens.saturating_add(output_tokens),
            "prompt_tokens_details": { "cached_tokens": cached_tokens },
            "completion_tokens_details": { "reasoning_tokens": reasoning_tokens } })
    }

    fn finish_reason(&self) -> &'static str {
        match &self.outcome {
            Some(TurnOutcome::AwaitsClient) => "tool_calls",
            Some(TurnOutcome::Truncated | TurnOutcome::StepLimit { .. }) => "length",
            _ => "stop",
        }
    }

    /// The whole response.
    pub fn full_response(&self) -> Value {
        let mut message = json!({ "role": "assistant", "content": self.content, "refusal": null });
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.clone().into();
        }
        if !self.tool_calls.is_empty() {
            message["tool_calls"] = self.tool_calls.clone().into();
        }
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason() });
        let mut whole = self.object("chat.completion", json!([choice]));
        whole["usage"] = self.usage();
        whole
    }
}

impl Encoder for CompletionEncoder {
    fn is_beyond(&self, event: &Event) -> bool {
        is_after(self.outcome.as_ref(), event)
    }

    fn event(&mut self, event: &Event, out: &mut String) {
        match &event.body {
            EventBody::Text { part, text } => {
                let is_new = self.text_part.replace(*part) != Some(*part);
                if is_new && !self.content.is_empty() {
                    self.text("\n\n", out);
                }
                self.text(text, out);
            }
            EventBody::Reasoning { text, .. } => {
                self.reasoning.push_str(text);
                self.chunk(&json!({ "reasoning_content": text }), None, out);
            }
            EventBody::ToolCalled { call, .. } if call.is_client_tool => {
                let function = json!({ "name": call.tool, "arguments": call.args.to_string() });
                let tool_call = json!({ "id": call.id, "type": "function", "function": function });
                let mut delta = tool_call.clone();
                delta["index"] = self.tool_calls.len().into();
                self.tool_calls.push(tool_call);
                self.chunk(&json!({ "tool_calls": [delta] }), None, out);
            }
            EventBody::ApprovalRequested { approval } => {
                let gap = if self.content.is_empty() { "" } else { "\n\n" };
                self.text_part = None;
                self.text(&format!("{gap}{}", pending_text(approval)), out);
            }
            EventBody::StepFinished { usage, .. } => self.usage = self.usage + usage.unwrap_or_default(),
            EventBody::TurnResumed => self.outcome = None,
            EventBody::TurnEnded { outcome } => self.outcome = Some(outcome.clone()),
            _ => {}
        }
    }

    fn end(&mut self, failure: Option<&str>, out: &mut String) {
        self.failure = match (failure, &self.outcome) {
            (Some(failure), _) => Some(failure.to_owned()),
            (None, None) => Some(INTERRUPTED.to_owned()),
            (None, Some(TurnOutcome::Failed { error })) => Some(error.message.clone()),
            (None, Some(_)) => None,
        };
        if let Some(message) = self.failure.clone() {
            // The SDKs raise an exception for it.
            let error = json!({ "message": message, "type": "server_error", "param": null, "code": null });
            return write_data(out, &json!({ "error": error }));
        }
        self.chunk(&json!({}), Some(self.finish_reason()), out);
        if self.includes_usage {
            let mut chunk = self.object("chat.completion.chunk", json!([]));
            chunk["usage"] = self.usage();
            write_data(out, &chunk);
        }
        out.push_str("data: [DONE]\n\n");
    }
}
