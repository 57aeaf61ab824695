//! `POST /v1/chat/completions`: the request has the whole conversation in it, so each gets a session of its own.

use serde_json::Value;
use toolwright_agent::{TurnOutcome, UserMessage};

use super::completions::CompletionEncoder;
use super::encode::{self, Events, PATIENCE};
use super::openai_request::{check_model, client_tools, failed, idempotency_key, tool_access};
use super::random_id;
use super::responses_routes::{TurnParts, start};
use super::session::{self, agent, derived_id};
use super::transcript::{Transcript, input_parts, shortened, text_of, tool_content};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

/// `POST /v1/chat/completions`.
pub(crate) async fn create(mut request: ApiRequest<'_>) -> ApiResult {
    let body: Value = request.read_chat_json().await?;
    check_model(&body)?;
    let transcript = read(&body)?;
    let access = tool_access(&body, &transcript);
    let tools = client_tools(&body, access)?;
    let turn = transcript.into_turn()?;
    let key = idempotency_key(&request.head.headers)?;
    let counted = (body["stream"] == true).then(|| encode::open_stream(&request, None)).transpose()?;
    let principal = request.principal()?;
    let id = key.map(|key| derived_id("key", principal, key));
    let message_id = match &id {
        Some(id) => format!("msg_{id}"),
        None => random_id("msg")?,
    };
    let conversation = session::create(&request, id).await?.temporary(true);
    let message = UserMessage { id: message_id, parts: turn.input };
    let parts = TurnParts { history: Some(turn.history), instructions: turn.instructions, access, tools };
    let turn = start(&request, &conversation, message, parts).await?;
    let stream = agent(&request)?.events(&conversation.session, turn.start).await?;
    let mut events = Events::new(stream);
    if let Some(TurnOutcome::Failed { error }) = events.wait_for_answer(PATIENCE).await {
        return Err(failed(&error));
    }
    let includes_usage = body["stream_options"]["include_usage"] == true;
    let created = request.app.orchestrator.now() / 1000;
    let mut encoder = CompletionEncoder::new(random_id("chatcmpl")?, created, includes_usage);
    if let Some(counted) = counted {
        return Ok(encode::stream(&request, &conversation, counted, events, encoder));
    }
    encode::encode_all(&mut events, &mut encoder).await;
    encode::finish(&request, &conversation).await;
    match &encoder.failure {
        Some(failure) => Err(Problem::new(Kind::BAD_GATEWAY, failure.clone())),
        None => Ok(json::response(&encoder.full_response())),
    }
}

fn read(body: &Value) -> Result<Transcript, Problem> {
    let bad_request = |detail: String| Problem::new(Kind::BAD_REQUEST, detail);
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages =
        messages.ok_or_else(|| bad_request("`messages` is empty: send at least one message.".to_owned()))?;
    let mut transcript = Transcript::default();
    for message in messages {
        match message["role"].as_str().unwrap_or_default() {
            "user" => transcript.user(input_parts(&message["content"])?),
            "system" | "developer" => transcript.instruct(text_of(&message["content"])?),
            "assistant" => {
                transcript.assistant_text(text_of(&message["content"])?);
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let (name, args) = (text(&function["name"]), text(&function["arguments"]));
                    transcript.call(call["id"].as_str().unwrap_or_default(), &name, &args);
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                transcript.result(id, tool_content(&message["content"])?)?;
            }
            role => return Err(bad_request(format!("There is no role `{}`.", shortened(role)))),
        }
    }
    Ok(transcript)
}
