//! `POST /v1/responses`: reads the input, a text or a list of items.

use serde_json::Value;
use toolwright_agent::ClientResult;

use super::confirmation_answers::Answer;
use super::responses::APPROVAL_PREFIX;
use super::transcript::{Transcript, input_parts, shortened, text_of, tool_content};
use crate::problem::{Kind, Problem};

/// A decoded request.
#[derive(Debug)]
pub(super) enum ResponseInput {
    Conversation(Transcript),
    /// Results of the client's own tools.
    Results(Vec<ClientResult>),
    /// Answers to confirmation requests.
    Answers(Vec<Answer>),
}

/// Reads `instructions` and `input`. With `is_continued`, results and answers belong to the conversation that is stored
/// here; without it they are parts of the conversation in the request.
pub(super) fn read(body: &Value, is_continued: bool) -> Result<ResponseInput, Problem> {
    let items = match &body["input"] {
        Value::String(text) => {
            let mut transcript = transcript_with_instructions(body);
            transcript.user(input_parts(&Value::String(text.clone()))?);
            return Ok(ResponseInput::Conversation(transcript));
        }
        Value::Array(items) => items,
        _ => return Err(bad_request("`input` is missing: send a text or a list of items.")),
    };
    let is_answer = |item: &&Value| item["type"] == "mcp_approval_response";
    if items.iter().any(|item| is_answer(&item)) {
        if !is_continued {
            return Err(bad_request(
                "An `mcp_approval_response` needs the `previous_response_id` of the response that asked.",
            ));
        }
        let answers = items.iter().filter(is_answer).map(answer);
        return Ok(ResponseInput::Answers(answers.collect::<Result<_, _>>()?));
    }
    let is_result = |item: &&Value| item["type"] == "function_call_output";
    let has_calls = items.iter().any(|item| item["type"] == "function_call");
    if is_continued && !has_calls && items.iter().any(|item| is_result(&item)) {
        let results = items.iter().filter(is_result).map(client_result);
        return Ok(ResponseInput::Results(results.collect::<Result<_, _>>()?));
    }
    let mut transcript = transcript_with_instructions(body);
    for item in items {
        add_item(&mut transcript, item)?;
    }
    Ok(ResponseInput::Conversation(transcript))
}

fn transcript_with_instructions(body: &Value) -> Transcript {
    let mut transcript = Transcript::default();
    if let Some(text) = body["instructions"].as_str() {
        transcript.instruct(text.to_owned());
    }
    transcript
}

fn add_item(transcript: &mut Transcript, item: &Value) -> Result<(), Problem> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "" | "message" => match text("role") {
            "user" => transcript.user(input_parts(&item["content"])?),
            "assistant" => transcript.assistant_text(text_of(&item["content"])?),
            "system" | "developer" => transcript.instruct(text_of(&item["content"])?),
            role => return Err(bad_request(format!("There is no role `{}`.", shortened(role)))),
        },
        "function_call" => transcript.call(text("call_id"), text("name"), text("arguments")),
        "function_call_output" => transcript.result(text("call_id"), tool_content(&item["output"])?)?,
        // Items of this server or of another provider without content for the model are skipped.
        "reasoning"
        | "mcp_approval_request"
        | "mcp_call"
        | "mcp_list_tools"
        | "item_reference"
        | "compaction" => {}
        kind => return Err(bad_request(format!("Items of type `{}` are not supported.", shortened(kind)))),
    }
    Ok(())
}

fn answer(item: &Value) -> Result<Answer, Problem> {
    let id = item["approval_request_id"].as_str().unwrap_or_default();
    let Some(approved) = item["approve"].as_bool() else {
        return Err(bad_request("An `mcp_approval_response` needs `approve`: true or false."));
    };
    Ok(Answer {
        approval_id: id.strip_prefix(APPROVAL_PREFIX).unwrap_or(id).to_owned(),
        approved,
        reason: item["reason"].as_str().map(str::to_owned),
        args: None,
        claimed_call: None,
    })
}

fn client_result(item: &Value) -> Result<ClientResult, Problem> {
    let Some(call_id) = item["call_id"].as_str() else {
        return Err(bad_request("A `function_call_output` needs the `call_id` of its call."));
    };
    let content = match &item["output"] {
        Value::Array(_) => Value::String(text_of(&item["output"])?),
        output => output.clone(),
    };
    Ok(ClientResult { call_id: call_id.to_owned(), content, is_error: false })
}

fn bad_request(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::BAD_REQUEST, detail)
}
