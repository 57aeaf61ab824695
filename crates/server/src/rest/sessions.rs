//! `/v1/sessions`: begun, looked at, ended; the turn. A session belongs to its principal, and to others does not exist.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{MeterScope, RETRIEVAL_METER, SessionRecord};

use crate::body::Body;
use crate::dispatch::{Answer, Asked};
use crate::json::{self, Form};
use crate::problem::{Kind, Problem};

/// Ids of clients are kept.
const LONGEST: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct New {
    mode: Mode,
    client_id: Option<String>,
}

impl Form for New {
    const FIELDS: &'static [&'static str] = &["mode", "clientId"];
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Form for Nothing {
    const FIELDS: &'static [&'static str] = &[];
}

pub(crate) async fn create(mut asked: Asked<'_>) -> Answer {
    let New { mode, client_id } = asked.form().await?;
    if client_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > LONGEST) {
        let detail = format!("`clientId` must have 1 to {LONGEST} bytes.");
        return Err(Problem::new(Kind::Unprocessable, detail));
    }
    let principal = (**asked.principal()?).clone();
    let client_id = client_id.unwrap_or_else(|| principal.id.clone());
    let_in(&asked, &principal, &client_id).await?;
    let new = NewSession { id: None, client_id, principal, mode, state: Map::new() };
    let session = asked.app.orchestrator.create_session(new).await?;
    Ok(json::created(&shown(&session)))
}

pub(crate) async fn get(asked: &Asked<'_>) -> Answer {
    Ok(json::answer(&shown(&*own(asked, asked.parameter).await?)))
}

pub(crate) async fn end(asked: &Asked<'_>) -> Answer {
    let session = own(asked, asked.parameter).await?;
    asked.app.orchestrator.end_session(&session.id).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

pub(crate) async fn begin_turn(mut asked: Asked<'_>) -> Answer {
    let Nothing {} = asked.form().await?;
    let session = own(&asked, asked.parameter).await?;
    let_in(&asked, &session.principal, &session.client_id).await?;
    let turn = asked.app.orchestrator.begin_turn(&session.id).await?;
    Ok(json::answer(&json!({ "turn": turn.number, "message": turn.message })))
}

/// Refuses a client that a tool has shut out. Its calls are refused by the orchestrator, with an envelope.
async fn let_in(asked: &Asked<'_>, principal: &Principal, client_id: &str) -> Result<(), Problem> {
    match asked.app.orchestrator.blocked_for(principal, client_id).await? {
        Some(left) => Err(Problem::blocked(left)),
        None => Ok(()),
    }
}

/// The session, if it is the asker's.
pub(crate) async fn own(asked: &Asked<'_>, id: &str) -> Result<Arc<SessionRecord>, Problem> {
    let principal = asked.principal()?;
    let session = asked.app.orchestrator.session(id).await?;
    let is_own = |session: &Arc<SessionRecord>| {
        session.principal.id == principal.id && session.principal.org == principal.org
    };
    session.filter(is_own).ok_or_else(|| Problem::not_found("session"))
}

fn shown(session: &SessionRecord) -> Value {
    json!({
        "sessionId": session.id,
        "clientId": session.client_id,
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
