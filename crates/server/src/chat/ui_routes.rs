//! `/api/chat`: the routes of the AI SDK's chat clients.

use hyper::Response;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use toolwright_agent::{Turn, TurnRequest};

use super::confirmation_answers;
use super::encode::{self, Events};
use super::log_lines::{self, LogEncoder};
use super::session::{self, Conversation, agent};
use super::task_results;
use super::transcript::shortened;
use super::ui::UiEncoder;
use super::ui_history;
use super::ui_request::{ChatBody, ChatInput, Version};
use crate::body::{self, Body};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

pub(super) const X_UI_STREAM: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// `POST /api/chat`: a message of the user, or answers to confirmation requests.
pub(crate) async fn post(mut request: ApiRequest<'_>) -> ApiResult {
    let body: ChatBody = request.read_chat_json().await?;
    let input = body.input()?;
    let agent = agent(&request)?;
    let client_id = body.client_id.as_deref();
    session::refuse_blocked_sender(&request, client_id).await?;
    let conversation = match &input {
        ChatInput::Message(_) => session::open(&request, body.id()?, client_id).await?,
        ChatInput::Answers(_) => {
            session::known(&request, body.id()?).await?.ok_or_else(confirmation_answers::answer_refused)?
        }
    };
    let principal = request.principal()?;
    let (turn, position) = match input {
        ChatInput::Message(message) => {
            let Version { message, replaces } = match body.may_be_version() {
                true => body.version(message, &agent.history(&conversation.session).await?),
                false => Version { message, replaces: None },
            };
            let mut turn = TurnRequest::message(&conversation.session, message);
            turn.principal = Some(principal.clone());
            turn.replaces = replaces;
            let turn = agent.start(turn).await?;
            let start = turn.start;
            (turn, start)
        }
        ChatInput::Answers(answers) => {
            let continued =
                confirmation_answers::answer_all(agent, &conversation.session, principal, answers).await?;
            (continued.turn, continued.position)
        }
    };
    stream(&request, &conversation, &turn, Place { start: position, seen: 0 }).await
}

/// `GET /api/chat/{chatId}/stream`: the whole message that is being written, from its begin. A turn that was
/// interrupted continues. With `Last-Event-ID`, the rest of the last message. With `follow=tasks`, the results of calls
/// that run in the background.
pub(crate) async fn resume(request: ApiRequest<'_>) -> ApiResult {
    // Nothing to resume is no error: clients ask on every load of a page.
    let Some(conversation) = session::find(&request, request.parameter).await? else {
        return Ok(body::no_content());
    };
    let [followed] = request.query(["follow"])?;
    let seen = encode::last_event_id(&request)?;
    match followed.as_deref() {
        None => {}
        Some("tasks") => return task_results::follow(&request, &conversation, seen.unwrap_or(0)).await,
        Some(other) => {
            let detail = format!("The query parameter `follow` must be `tasks`, not `{}`.", shortened(other));
            return Err(Problem::new(Kind::BAD_REQUEST, detail));
        }
    }
    let (agent, session) = (agent(&request)?, &conversation.session);
    let turn = match (agent.resume(session, request.principal()?).await?, seen) {
        (Some(turn), _) => Some(turn),
        (None, Some(seen)) => agent.last_turn_after(session, seen).await?,
        (None, None) => None,
    };
    match turn {
        Some(turn) => {
            let place = Place { start: turn.start, seen: seen.unwrap_or(0) };
            stream(&request, &conversation, &turn, place).await
        }
        None => Ok(body::no_content()),
    }
}

/// `POST /api/chat/{chatId}/stop`: stops the running turn. Its output so far is kept.
pub(crate) async fn stop(mut request: ApiRequest<'_>) -> ApiResult {
    let body: Value = request.read_chat_json().await?;
    let conversation = known(&request).await?;
    let agent = agent(&request)?;
    if let Some(stream) = body["activeStreamId"].as_str() {
        let running = agent.running_turn(&conversation.session).await?;
        if running.is_none_or(|turn| turn.reply != stream) {
            return Ok(body::no_content());
        }
    }
    agent.stop(&conversation.session).await?;
    Ok(body::no_content())
}

/// `GET /api/chat/{chatId}/messages`: the conversation as the client shows it.
pub(crate) async fn messages(request: ApiRequest<'_>) -> ApiResult {
    let conversation = known(&request).await?;
    let history = agent(&request)?.history(&conversation.session).await?;
    Ok(json::response(&json!({ "messages": ui_history::messages(&history) })))
}

async fn known(request: &ApiRequest<'_>) -> Result<Conversation, Problem> {
    session::find(request, request.parameter)
        .await?
        .ok_or_else(|| Problem::not_found("Chat", request.parameter))
}

/// Where a stream begins in the log.
struct Place {
    start: u64,
    /// The client has the events up to this position.
    seen: u64,
}

async fn stream(
    request: &ApiRequest<'_>,
    conversation: &Conversation,
    turn: &Turn,
    place: Place,
) -> Result<Response<Body>, Problem> {
    let events = Events::new(agent(request)?.events(&conversation.session, place.start).await?);
    let counted = encode::open_stream(request, Some(&conversation.session))?;
    if wants_log(&request.head.headers) {
        let encoder = LogEncoder { turn: turn.id.clone(), seen: place.seen };
        return Ok(encode::stream(request, conversation, counted, events, encoder));
    }
    let encoder = UiEncoder::new(&turn.id, &turn.reply, place.seen);
    let mut response = encode::stream(request, conversation, counted, events, encoder);
    response.headers_mut().insert(X_UI_STREAM, HeaderValue::from_static("v1"));
    Ok(response)
}

/// Whether the client asks for the events of the log.
pub(super) fn wants_log(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim() == log_lines::CONTENT_TYPE)
}
