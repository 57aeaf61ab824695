//! `/v1/responses`: the routes of OpenAI's Responses API.

use std::collections::HashMap;

use serde_json::{Map, Value};
use toolwright_agent::{
    Agent, ClientTool, EventBody, Message, ToolAccess, ToolCallPart, Turn, TurnInput, TurnOutcome,
    TurnRequest, UserMessage,
};

use super::encode::{self, Events, PATIENCE};
use super::openai_request::{self, check_model, client_tools, failed, tool_access};
use super::response_id::ResponseId;
use super::response_object::ResponseTemplate;
use super::responses::ResponseEncoder;
use super::responses_request::{self, ResponseInput};
use super::session::{self, Conversation, agent, derived_id};
use super::transcript::{Transcript, shortened};
use super::{confirmation_answers, random_id};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

/// `POST /v1/responses`.
pub(crate) async fn create(mut request: ApiRequest<'_>) -> ApiResult {
    let body: Value = request.read_chat_json().await?;
    check_model(&body)?;
    let previous = previous(&request, &body).await?;
    let input = responses_request::read(&body, previous.is_some())?;
    let is_stored = body["store"] != false;
    let counted = (body["stream"] == true).then(|| encode::open_stream(&request, None)).transpose()?;
    let StartedResponse { conversation, turn, position } =
        begin(&request, &body, previous.as_ref(), input, is_stored).await?;
    let agent = agent(&request)?;
    let mut events = Events::new(agent.events(&conversation.session, position).await?);
    if let Some(TurnOutcome::Failed { error }) = events.wait_for_answer(PATIENCE).await {
        return Err(failed(&error));
    }
    let id = match is_stored {
        true => ResponseId { session: conversation.session.clone(), position }.to_string(),
        false => random_id("resp")?,
    };
    let template = ResponseTemplate {
        id,
        created_at: request.app.orchestrator.now() / 1000,
        previous_response_id: body["previous_response_id"].as_str().map(str::to_owned),
        echo: ResponseTemplate::echo(&body),
        is_stored,
    };
    let mut encoder = ResponseEncoder::new(template, earlier_calls(agent, &turn, position).await?);
    if let Some(counted) = counted {
        return Ok(encode::stream(&request, &conversation, counted, events, encoder));
    }
    encode::encode_all(&mut events, &mut encoder).await;
    encode::finish(&request, &conversation).await;
    Ok(json::response(&encoder.whole))
}

/// `GET /v1/responses/{responseId}`.
pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let unknown = || not_found(request.parameter);
    let id = find(&request, request.parameter).await?.ok_or_else(unknown)?;
    let agent = agent(&request)?;
    let mut events = Events::new(agent.events(&id.session, id.position).await?);
    let first = events.peek().await.map_err(|failure| Problem::new(Kind::UNAVAILABLE, failure))?;
    let Some((turn, created_at)) =
        first.filter(|event| is_begin(&event.body)).map(|first| (first.turn.clone(), first.at))
    else {
        return Err(unknown());
    };
    let template = ResponseTemplate {
        id: id.to_string(),
        created_at: created_at / 1000,
        previous_response_id: None,
        echo: Map::new(),
        is_stored: true,
    };
    let calls = calls_of(&agent.history(&id.session).await?, &turn);
    let mut encoder = ResponseEncoder::new(template, calls);
    encode::encode_all(&mut events, &mut encoder).await;
    Ok(json::response(&encoder.whole))
}

const fn is_begin(body: &EventBody) -> bool {
    matches!(body, EventBody::TurnStarted { .. } | EventBody::TurnResumed)
}

/// A turn, and the position in the log at which its response begins.
struct StartedResponse {
    conversation: Conversation,
    turn: Turn,
    position: u64,
}

async fn begin(
    request: &ApiRequest<'_>,
    body: &Value,
    previous: Option<&ResponseId>,
    input: ResponseInput,
    is_stored: bool,
) -> Result<StartedResponse, Problem> {
    let agent = agent(request)?;
    let principal = request.principal()?;
    match (input, previous) {
        (ResponseInput::Conversation(transcript), previous) => {
            begin_message(request, body, previous, transcript, is_stored).await
        }
        (ResponseInput::Answers(answers), Some(previous)) => {
            let continued =
                confirmation_answers::answer_all(agent, &previous.session, principal, answers).await?;
            let conversation = Conversation::stored(&previous.session);
            Ok(StartedResponse { conversation, turn: continued.turn, position: continued.position })
        }
        (ResponseInput::Results(results), Some(previous)) => {
            let first = results.first().map(|result| result.call_id.clone()).unwrap_or_default();
            let mut turn = TurnRequest::new(&previous.session, TurnInput::ClientResults(results));
            turn.principal = Some(principal.clone());
            turn.client_tools = client_tools(body, ToolAccess::Session)?;
            let turn = agent.start(turn).await?;
            let position = confirmation_answers::results_position(agent, &turn, &first).await?;
            Ok(StartedResponse { conversation: Conversation::stored(&previous.session), turn, position })
        }
        // `responses_request::read` refuses them.
        (ResponseInput::Answers(_) | ResponseInput::Results(_), None) => Err(not_found("")),
    }
}

async fn begin_message(
    request: &ApiRequest<'_>,
    body: &Value,
    previous: Option<&ResponseId>,
    transcript: Transcript,
    is_stored: bool,
) -> Result<StartedResponse, Problem> {
    let access = tool_access(body, &transcript);
    let tools = client_tools(body, access)?;
    let key = openai_request::idempotency_key(&request.head.headers)?;
    let principal = request.principal()?;
    let message_id = match key {
        Some(key) => derived_id("msg", principal, key),
        None => random_id("msg")?,
    };
    let (conversation, turn) = match previous {
        Some(previous) => {
            let conversation = conversation_after(request, previous, key, &message_id).await?;
            (conversation, transcript.into_new_input()?)
        }
        None => {
            let turn = transcript.into_turn()?;
            let id = key.map(|key| derived_id("key", principal, key));
            let is_temporary = !is_stored || access == ToolAccess::None;
            (session::create(request, id).await?.temporary(is_temporary), turn)
        }
    };
    let history = previous.is_none().then_some(turn.history);
    let message = UserMessage { id: message_id, parts: turn.input };
    let turn = start(
        request,
        &conversation,
        message,
        TurnParts { history, instructions: turn.instructions, access, tools },
    );
    let turn = turn.await?;
    let position = turn.start;
    Ok(StartedResponse { conversation, turn, position })
}

/// The conversation that goes on after a response: its own if the response is the last one, else a copy up to there. A
/// request that is sent again with its key goes to the conversation that has its message.
async fn conversation_after(
    request: &ApiRequest<'_>,
    previous: &ResponseId,
    key: Option<&str>,
    message_id: &str,
) -> Result<Conversation, Problem> {
    let agent = agent(request)?;
    let end = match agent.run_end(&previous.session, previous.position).await? {
        Some(end) if !end.is_last => end,
        _ => return Ok(Conversation::stored(&previous.session)),
    };
    let copy_id = match key {
        Some(key) => {
            let has_message =
                |message: &Message| matches!(message, Message::User(user) if user.id == message_id);
            if agent.history(&previous.session).await?.iter().any(has_message) {
                return Ok(Conversation::stored(&previous.session));
            }
            let copy = derived_id("copy", request.principal()?, &format!("{key} {previous}"));
            if request.app.orchestrator.session(&copy).await?.is_some() {
                return Ok(Conversation::stored(&copy));
            }
            Some(copy)
        }
        None => None,
    };
    let copy = session::create(request, copy_id).await?;
    agent.fork(&previous.session, end.position, &copy.session).await?;
    Ok(copy)
}

/// History, instructions and client tools of the request.
pub(super) struct TurnParts {
    pub history: Option<Vec<Message>>,
    pub instructions: Option<String>,
    pub access: ToolAccess,
    pub tools: Vec<ClientTool>,
}

/// Starts a turn. Without parts, the conversation in the request goes on.
pub(super) async fn start(
    request: &ApiRequest<'_>,
    conversation: &Conversation,
    message: UserMessage,
    parts: TurnParts,
) -> Result<Turn, Problem> {
    let input = match message.parts.is_empty() && parts.history.is_some() {
        true => TurnInput::Continue { id: message.id },
        false => TurnInput::Message(message),
    };
    let mut turn = TurnRequest::new(&conversation.session, input);
    turn.principal = Some(request.principal()?.clone());
    turn.history = parts.history;
    turn.instructions = parts.instructions;
    turn.tools = parts.access;
    turn.client_tools = parts.tools;
    Ok(agent(request)?.start(turn).await?)
}

/// The response that the request continues.
async fn previous(request: &ApiRequest<'_>, body: &Value) -> Result<Option<ResponseId>, Problem> {
    let Some(text) = body["previous_response_id"].as_str() else { return Ok(None) };
    let Some(id) = find(request, text).await? else {
        let detail = format!("There is no response `{}`, or it was not stored.", shortened(text));
        return Err(Problem::new(Kind::NOT_FOUND, detail).with_code("previous_response_not_found"));
    };
    session::refuse_blocked_client(request, &id.session).await?;
    Ok(Some(id))
}

/// The response with this id, if its session belongs to the principal.
async fn find(request: &ApiRequest<'_>, text: &str) -> Result<Option<ResponseId>, Problem> {
    let Some(id) = ResponseId::parse(text) else { return Ok(None) };
    let session = request.app.orchestrator.session(&id.session).await?;
    let is_own = session.is_some_and(|session| crate::request::owns_session(request.principal, &session));
    Ok(is_own.then_some(id))
}

fn not_found(id: &str) -> Problem {
    Problem::new(Kind::NOT_FOUND, format!("There is no response `{}`, or it was not stored.", shortened(id)))
        .with_code("response_not_found")
}

/// The calls of the turn before a continuation: their results come after it.
async fn earlier_calls(
    agent: &Agent,
    turn: &Turn,
    position: u64,
) -> Result<HashMap<String, ToolCallPart>, Problem> {
    match position > turn.start {
        true => Ok(calls_of(&agent.history(&turn.session).await?, &turn.id)),
        false => Ok(HashMap::new()),
    }
}

fn calls_of(history: &[Message], turn: &str) -> HashMap<String, ToolCallPart> {
    let replies = history.iter().filter_map(|message| match message {
        Message::Assistant(reply) if reply.turn == turn => Some(reply),
        _ => None,
    });
    let tools = replies.flat_map(toolwright_agent::AssistantMessage::tools);
    tools.map(|tool| (tool.call.id.clone(), tool.call.clone())).collect()
}
