//! `/v1/sessions`: create, read and end sessions; begin a turn. A session belongs to its principal; to others it does
//! not exist.

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::store::{MeterScope, RETRIEVAL_METER, SessionQuery, SessionRecord};

use crate::body;
use crate::json;
use crate::problem::{Kind, Problem};
use crate::query::number;
use crate::request::{ApiRequest, ApiResult, new_session};
use crate::rest::call_history::visible_to;
use crate::route::ADMIN;

pub(crate) const MAX_ID_BYTES: usize = 256;
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateBody {
    mode: Mode,
    client_id: Option<String>,
    /// For admins only, like `state`.
    session_id: Option<String>,
    state: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

pub(crate) async fn create(mut request: ApiRequest<'_>) -> ApiResult {
    let fields = ["mode", "clientId", "sessionId", "state"];
    let CreateBody { mode, client_id, session_id, state } = request.read_json(&fields).await?;
    for (name, id) in [("clientId", &client_id), ("sessionId", &session_id)] {
        if id.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_ID_BYTES) {
            let detail = format!("`{name}` must have 1 to {MAX_ID_BYTES} bytes.");
            return Err(Problem::new(Kind::UNPROCESSABLE, detail));
        }
    }
    if (session_id.is_some() || state.is_some()) && !request.may_shape_sessions() {
        let detail = format!("`sessionId` and `state` of a new session need the role {ADMIN}.");
        return Err(Problem::new(Kind::FORBIDDEN, detail));
    }
    let mut new = new_session(request.principal()?, mode);
    new.client_id = client_id.unwrap_or(new.client_id);
    new.id = session_id;
    new.state = state.unwrap_or_default();
    refuse_blocked(&request, &new.principal, &new.client_id, None).await?;
    let session = request.app.orchestrator.create_session(new).await?;
    let mut response = json::response(&with_meters(&request, &session));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// A page of the caller's sessions, newest first; of all sessions for an admin.
pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [before, limit] = request.query(["before", "limit"])?;
    let before = before.as_deref().map(parse_place).transpose()?;
    let limit = number("limit", limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT)?.max(1);
    let principal = visible_to(&request)?;
    let query = SessionQuery { principal: principal.as_deref(), before, limit: limit as usize };
    let page = request.app.orchestrator.sessions(query).await?;
    let sessions: Vec<Value> = page.sessions.iter().map(|session| with_meters(&request, session)).collect();
    let next = page.next.map(|(at, id)| format!("{at}.{id}"));
    Ok(json::response(&json!({ "sessions": sessions, "next": next })))
}

/// The place of a session in the list: its time and its id.
pub(crate) fn parse_place(text: &str) -> Result<(i64, &str), Problem> {
    let place = text.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id)));
    place.ok_or_else(|| {
        let detail = format!("The query parameter `before` must be `next` of the page before, not `{text}`.");
        Problem::new(Kind::BAD_REQUEST, detail)
    })
}

pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let session = request.own_session(request.parameter).await?;
    Ok(json::response(&with_meters(&request, &session)))
}

pub(crate) async fn end(request: ApiRequest<'_>) -> ApiResult {
    let session = request.own_session(request.parameter).await?;
    request.app.orchestrator.end_session(&session.id).await?;
    Ok(body::no_content())
}

pub(crate) async fn begin_turn(mut request: ApiRequest<'_>) -> ApiResult {
    let EmptyBody {} = request.read_json(&[]).await?;
    let session = request.own_session(request.parameter).await?;
    let principal = request.caller()?.map_or(&session.principal, |principal| &**principal);
    refuse_blocked(&request, principal, &session.client_id, Some(&session.id)).await?;
    let turn = request.app.orchestrator.begin_turn(&session.id).await?;
    Ok(json::response(&json!({ "turn": turn.number, "message": turn.message })))
}

/// Refuses a blocked client. Its calls are refused by the orchestrator, with an envelope.
pub(crate) async fn refuse_blocked(
    request: &ApiRequest<'_>,
    principal: &Principal,
    client_id: &str,
    session: Option<&str>,
) -> Result<(), Problem> {
    match request.app.orchestrator.blocked_for(principal, client_id, session).await? {
        Some(remaining_ms) => Err(Problem::blocked(remaining_ms)),
        None => Ok(()),
    }
}

/// A session as the API shows it: with what it has spent of each meter, and the limits that are in force.
fn with_meters(request: &ApiRequest<'_>, session: &SessionRecord) -> Value {
    let mut shown = session_json(session);
    let uses = request.app.orchestrator.meter_uses(session);
    let uses = uses
        .iter()
        .map(|own| json!({ "meter": own.meter, "scope": own.scope, "spent": own.spent, "limit": own.limit }));
    shown["meters"] = uses.collect();
    shown
}

/// A session as its record has it.
pub fn session_json(session: &SessionRecord) -> Value {
    json!({
        "sessionId": session.id,
        "clientId": session.client_id,
        "principal": { "id": session.principal.id, "org": session.principal.org, "roles": session.principal.roles },
        "mode": session.mode,
        "toolsVersion": session.toolset.split('+').next(),
        "standing": session.status,
        "turn": session.turn,
        "retrievals": session.spent.get(MeterScope::Turn, RETRIEVAL_METER),
        "state": session.state,
        "createdAt": session.created_at,
        "expiresAt": session.expires_at,
    })
}
