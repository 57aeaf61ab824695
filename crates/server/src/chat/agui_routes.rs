//! `POST /api/agui`: one run of an AG-UI client. The thread is a stored conversation, so only the new part of the
//! request is read.

use serde::Deserialize;
use serde_json::Value;
use toolwright_agent::{ClientResult, ClientTool, InputPart, TurnInput, TurnRequest, UserMessage};

use super::agui::AguiEncoder;
use super::confirmation_answers::{self, Answer};
use super::encode::{self, Events};
use super::session::{self, Conversation, agent};
use super::transcript::{shortened, text_of};
use crate::body;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

/// `RunAgentInput`; other fields are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunInput {
    thread_id: Option<String>,
    run_id: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    resume: Option<Vec<ResumeEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeEntry {
    interrupt_id: String,
    status: String,
    #[serde(default)]
    payload: Value,
}

/// `POST /api/agui`.
pub(crate) async fn run(mut request: ApiRequest<'_>) -> ApiResult {
    let input: RunInput = request.read_chat_json().await?;
    let (Some(thread), Some(run)) = (&input.thread_id, &input.run_id) else {
        return Err(Problem::new(Kind::BAD_REQUEST, "`threadId` and `runId` are needed."));
    };
    let encoder = AguiEncoder::new(thread, run);
    match begin(&request, &input, thread).await {
        Ok((conversation, position)) => {
            let events = Events::new(agent(&request)?.events(&conversation.session, position).await?);
            let counted = encode::open_stream(&request, Some(&conversation.session))?;
            Ok(encode::stream(&request, &conversation, counted, events, encoder))
        }
        // The client reads errors of a run from its events.
        Err(problem) => {
            Ok(body::response("text/event-stream", encoder.refused(problem.code(), problem.detail())))
        }
    }
}

/// Starts or continues the turn. The position before its first new event.
async fn begin(
    request: &ApiRequest<'_>,
    input: &RunInput,
    thread: &str,
) -> Result<(Conversation, u64), Problem> {
    let agent = agent(request)?;
    let principal = request.principal()?;
    if let Some(entries) = input.resume.as_ref().filter(|entries| !entries.is_empty()) {
        let conversation =
            session::known(request, thread).await?.ok_or_else(confirmation_answers::answer_refused)?;
        let answers = entries.iter().map(answer).collect::<Result<_, _>>()?;
        let continued =
            confirmation_answers::answer_all(agent, &conversation.session, principal, answers).await?;
        return Ok((conversation, continued.position));
    }
    let conversation = session::open(request, thread, None).await?;
    let mut turn = TurnRequest::new(&conversation.session, turn_input(&input.messages)?);
    turn.principal = Some(principal.clone());
    turn.client_tools = input.tools.iter().filter_map(client_tool).collect();
    let answered = match &turn.input {
        TurnInput::ClientResults(results) => results.first().map(|result| result.call_id.clone()),
        _ => None,
    };
    let turn = agent.start(turn).await?;
    let position = match answered {
        Some(call_id) => confirmation_answers::results_position(agent, &turn, &call_id).await?,
        None => turn.start,
    };
    Ok((conversation, position))
}

fn turn_input(messages: &[Value]) -> Result<TurnInput, Problem> {
    let last =
        messages.last().ok_or_else(|| bad_request("`messages` is empty: send at least one message."))?;
    match last["role"].as_str() {
        Some("user") => {
            let id = last["id"].as_str().ok_or_else(|| bad_request("The last message has no `id`."))?;
            Ok(TurnInput::Message(UserMessage { id: id.to_owned(), parts: parts(&last["content"])? }))
        }
        Some("tool") => {
            let results =
                messages.iter().rev().take_while(|message| message["role"] == "tool").map(client_result);
            Ok(TurnInput::ClientResults(results.collect::<Result<_, _>>()?))
        }
        _ => Err(bad_request("The last message must have the role `user` or `tool`.")),
    }
}

fn parts(content: &Value) -> Result<Vec<InputPart>, Problem> {
    let Value::Array(parts) = content else {
        let text =
            content.as_str().ok_or_else(|| bad_request("`content` must be a text or a list of parts."))?;
        return Ok(vec![InputPart::Text { text: text.to_owned() }]);
    };
    let part = |part: &Value| {
        let source = &part["source"];
        let value = source["value"].as_str();
        let kind = part["type"].as_str().unwrap_or_default();
        match (kind, part["text"].as_str(), source["type"].as_str(), value) {
            ("text", Some(text), ..) => Ok(InputPart::Text { text: text.to_owned() }),
            ("image", _, Some("url"), Some(url)) => Ok(InputPart::Image { url: url.to_owned() }),
            ("image", _, Some("data"), Some(data)) => {
                let media = source["mimeType"].as_str().unwrap_or("image/png");
                Ok(InputPart::Image { url: format!("data:{media};base64,{data}") })
            }
            _ => Err(bad_request(format!(
                "Parts of type `{}` are not supported. Send texts and pictures.",
                shortened(kind)
            ))),
        }
    };
    parts.iter().map(part).collect()
}

fn client_result(message: &Value) -> Result<ClientResult, Problem> {
    let Some(call_id) = message["toolCallId"].as_str() else {
        return Err(bad_request("A message of role `tool` needs the `toolCallId` of its call."));
    };
    let is_error = message["error"].is_string();
    let content = Value::String(text_of(&message["content"])?);
    Ok(ClientResult { call_id: call_id.to_owned(), content, is_error })
}

fn client_tool(tool: &Value) -> Option<ClientTool> {
    Some(ClientTool {
        name: tool["name"].as_str()?.to_owned(),
        description: tool["description"].as_str().unwrap_or_default().to_owned(),
        parameters: match &tool["parameters"] {
            Value::Null => serde_json::json!({ "type": "object", "properties": {} }),
            parameters => parameters.clone(),
        },
    })
}

/// The payload is as our `responseSchema` says. An interrupt without an answer rejects the call.
fn answer(entry: &ResumeEntry) -> Result<Answer, Problem> {
    let approved = match (entry.status.as_str(), entry.payload["approved"].as_bool()) {
        ("cancelled", _) => false,
        ("resolved", Some(approved)) => approved,
        _ => {
            let detail = "An answer needs `status: \"resolved\"` and a payload with `approved`, or `status: \"cancelled\"`.";
            return Err(bad_request(detail));
        }
    };
    let args = entry.payload.get("args").filter(|args| approved && args.is_object()).cloned();
    let reason = entry.payload["reason"].as_str().map(str::to_owned);
    Ok(Answer { approval_id: entry.interrupt_id.clone(), approved, reason, args, claimed_call: None })
}

fn bad_request(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::BAD_REQUEST, detail)
}
