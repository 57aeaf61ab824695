//! A conversation that the client sends along, as OpenAI's clients do: read into our messages.

use serde_json::{Value, json};
use toolwright_agent::{
    AssistantMessage, FinishReason, InputPart, Message, Part, Step, ToolCallPart, ToolPart, ToolResultPart,
    UserMessage,
};

use crate::problem::{Kind, Problem};

/// How long a name in an error may be.
const MAX_NAME_CHARS: usize = 60;

/// The messages so far, in order.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    messages: Vec<Message>,
    instructions: Vec<String>,
}

/// The action that a transcript asks for.
#[derive(Debug)]
pub(super) struct TranscriptTurn {
    pub history: Vec<Message>,
    /// Empty when the history ends with the assistant: it continues.
    pub input: Vec<InputPart>,
    pub instructions: Option<String>,
}

impl Transcript {
    /// A system or developer message.
    pub fn instruct(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.instructions.push(text);
        }
    }

    pub fn user(&mut self, parts: Vec<InputPart>) {
        self.messages.push(Message::User(UserMessage { id: String::new(), parts }));
    }

    pub fn assistant_text(&mut self, text: String) {
        if !text.is_empty() {
            self.step().parts.push(Part::Text { text, provider_data: None });
        }
    }

    /// A call; `args` is the text that the model wrote.
    pub fn call(&mut self, id: &str, tool: &str, args: &str) {
        let args = serde_json::from_str(args).unwrap_or_else(|_| Value::String(args.to_owned()));
        let call = ToolCallPart {
            id: id.to_owned(),
            tool: tool.to_owned(),
            args,
            is_redacted: false,
            is_client_tool: false,
        };
        let tool = ToolPart { call, provider_data: None, approval: None, decision: None, result: None };
        self.step().parts.push(Part::Tool(Box::new(tool)));
    }

    /// The result of a call above.
    pub fn result(&mut self, call_id: &str, content: Value) -> Result<(), Problem> {
        let steps = self.messages.iter_mut().rev().filter_map(|message| match message {
            Message::Assistant(reply) => Some(&mut reply.steps),
            _ => None,
        });
        let mut parts = steps.flatten().flat_map(|step| &mut step.parts);
        let found = parts.find_map(|part| match part {
            Part::Tool(tool) if tool.call.id == call_id => Some(tool),
            _ => None,
        });
        let Some(tool) = found else {
            let detail = format!("There is no call `{}` before its result.", shortened(call_id));
            return Err(Problem::new(Kind::BAD_REQUEST, detail));
        };
        tool.result = Some(ToolResultPart {
            call_id: call_id.to_owned(),
            tool: tool.call.tool.clone(),
            content: content.into(),
            is_error: false,
            is_declined: false,
            duration_ms: 0,
            task: None,
        });
        Ok(())
    }

    /// The step that the next part belongs to: after a result, a new one.
    fn step(&mut self) -> &mut Step {
        if !matches!(self.messages.last(), Some(Message::Assistant(_))) {
            self.messages.push(Message::Assistant(AssistantMessage::default()));
        }
        let Some(Message::Assistant(reply)) = self.messages.last_mut() else { unreachable!() };
        let needs_step = reply.steps.last().is_none_or(|step| step.tools().any(|tool| tool.result.is_some()));
        if needs_step {
            reply.steps.push(Step { finish: Some(FinishReason::Stop), ..Step::default() });
        }
        let last = reply.steps.len() - 1;
        &mut reply.steps[last]
    }

    /// The parts of all user messages, and the instructions, for a conversation that is stored here.
    pub fn into_new_input(self) -> Result<TranscriptTurn, Problem> {
        let mut input = Vec::new();
        for message in self.messages {
            match message {
                Message::User(message) => input.extend(message.parts),
                _ => {
                    let detail = "With `previous_response_id`, send only what is new: messages of the user.";
                    return Err(Problem::new(Kind::BAD_REQUEST, detail));
                }
            }
        }
        Ok(TranscriptTurn { history: Vec::new(), input, instructions: joined(&self.instructions) })
    }

    /// Splits off the last message of the user.
    pub fn into_turn(mut self) -> Result<TranscriptTurn, Problem> {
        let instructions = joined(&self.instructions);
        let input = match self.messages.pop() {
            None => {
                return Err(Problem::new(
                    Kind::BAD_REQUEST,
                    "There is no message: send at least one of the user.",
                ));
            }
            Some(Message::User(message)) => message.parts,
            Some(last) => {
                self.messages.push(last);
                Vec::new()
            }
        };
        Ok(TranscriptTurn { history: self.messages, input, instructions })
    }

    /// The only message, if it is one of the user and nothing else was said.
    pub fn only_text(&self) -> Option<String> {
        match self.messages.as_slice() {
            [Message::User(message)] => Some(message.to_text()),
            _ => None,
        }
    }
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The content of a message: a text, or parts.
pub(super) fn input_parts(content: &Value) -> Result<Vec<InputPart>, Problem> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![InputPart::Text { text: text.clone() }]),
        Value::Array(parts) => parts.iter().map(input_part).collect(),
        _ => Err(Problem::new(Kind::BAD_REQUEST, "`content` must be a text or a list of parts.")),
    }
}

fn input_part(part: &Value) -> Result<InputPart, Problem> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let kind = part["type"].as_str().unwrap_or_default();
    let read = match kind {
        "text" | "input_text" | "output_text" => text(&part["text"]).map(|text| InputPart::Text { text }),
        "refusal" => text(&part["refusal"]).map(|text| InputPart::Text { text }),
        "image_url" | "input_image" => {
            let url = &part["image_url"];
            text(url).or_else(|| text(&url["url"])).map(|url| InputPart::Image { url })
        }
        _ => {
            let detail = format!(
                "Parts of type `{}` are not supported. Send texts and pictures (`image_url`).",
                shortened(kind)
            );
            return Err(Problem::new(Kind::BAD_REQUEST, detail).with_code("unsupported_content"));
        }
    };
    read.ok_or_else(|| Problem::new(Kind::BAD_REQUEST, format!("A part of type `{kind}` lacks its content.")))
}

/// The text of a content.
pub(super) fn text_of(content: &Value) -> Result<String, Problem> {
    let parts = input_parts(content)?;
    Ok(UserMessage { id: String::new(), parts }.to_text())
}

/// The output of a tool as its client sends it: JSON if it is, else the text.
pub(super) fn tool_content(output: &Value) -> Result<Value, Problem> {
    let text = match output {
        Value::Array(_) => text_of(output)?,
        Value::String(text) => text.clone(),
        other => return Ok(json!({ "ok": true, "data": other })),
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_object() && value.get("ok").is_some() => Ok(value),
        Ok(value) => Ok(json!({ "ok": true, "data": value })),
        Err(_) => Ok(json!({ "ok": true, "data": text })),
    }
}

/// A name from a request, short enough for an error.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}
