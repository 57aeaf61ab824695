//! `/v1/confirmations`: confirmation requests and their answers. The session's principal answers with the token of the
//! request, which its client has; an admin needs only the id.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_contract::{ClientEnvelope, Envelope};
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, PendingQuery, PendingScope};
use toolwright_registry::hex;

use crate::json;
use crate::problem::{Kind, Problem};
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveBody {
    args: Option<Value>,
    #[serde(default)]
    remember: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RejectBody {
    reason: Option<String>,
}

/// A page of the confirmation requests of one session, or of all sessions that the caller may see.
pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [session, after, limit] = request.query(["sessionId", "after", "limit"])?;
    if let Some(session) = session.as_deref().filter(|_| !request.is_admin()) {
        request.own_session(session).await?;
    }
    let principal = request.principal()?.key();
    let scope = match session.as_deref() {
        Some(session) => PendingScope::Session(session),
        None if request.is_admin() => PendingScope::All,
        None => PendingScope::Principal(&principal),
    };
    let after = after.as_deref().map(parse_place).transpose()?;
    let limit = number("limit", limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT)?.max(1);
    let query = PendingQuery { scope, after, limit: limit as usize };
    let page = request.app.orchestrator.pending_page(query).await?;
    let mut all = Vec::new();
    for pending in &page.requests {
        if request.is_admin() || request.own_session(&pending.session).await.is_ok() {
            all.push(to_json(&request, pending).await?);
        }
    }
    let next = page.next.map(|(at, id)| format!("{at}.{id}"));
    Ok(json::response(&json!({ "confirmations": all, "next": next })))
}

/// The place of a confirmation request in the list: its time and its id.
pub(crate) fn parse_place(text: &str) -> Result<(i64, &str), Problem> {
    let place = text.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id)));
    place.ok_or_else(|| {
        let detail = format!("The query parameter `after` must be `next` of the page before, not `{text}`.");
        Problem::new(Kind::BAD_REQUEST, detail)
    })
}

pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let confirmation = find(&request).await?;
    Ok(json::response(&to_json(&request, &confirmation).await?))
}

pub(crate) async fn approve(mut request: ApiRequest<'_>) -> ApiResult {
    let ApproveBody { args, remember } = request.read_json(&["args", "remember"]).await?;
    if remember && args.is_some() {
        let detail = "`remember` applies to the call as it was requested: leave `args` out.";
        return Err(Problem::new(Kind::UNPROCESSABLE, detail));
    }
    let confirmation = find(&request).await?;
    let approver = approver(&request, &confirmation)?;
    let orchestrator = &request.app.orchestrator;
    let envelope = if remember {
        orchestrator.approve_and_remember(&approver).await
    } else {
        orchestrator.approve(&approver, args).await
    };
    to_response(&request, &*envelope.map_err(|error| to_problem(error, &confirmation.id))?)
}

pub(crate) async fn reject(mut request: ApiRequest<'_>) -> ApiResult {
    let RejectBody { reason } = request.read_json(&["reason"]).await?;
    let confirmation = find(&request).await?;
    let envelope = request.app.orchestrator.reject(&approver(&request, &confirmation)?, reason).await;
    Ok(json::response(&*envelope.map_err(|error| to_problem(error, &confirmation.id))?))
}

/// The confirmation request that the path names by its id or its token, if the caller may see it.
async fn find(request: &ApiRequest<'_>) -> Result<Arc<ConfirmationRecord>, Problem> {
    let id = request.parameter.split('.').next().unwrap_or_default();
    let unknown = || Problem::not_found("Confirmation request", id);
    let confirmation = request.app.orchestrator.store().confirmation(id).await?;
    let confirmation = confirmation.ok_or_else(unknown)?;
    if !request.is_admin() {
        request.own_session(&confirmation.session).await.map_err(|_| unknown())?;
    }
    Ok(confirmation)
}

/// An id is not a secret: a client proves with the token that the request was sent to it, and a model that calls the
/// API with its client's key has none. A token, where one is given, must be valid.
fn approver<'a>(
    request: &'a ApiRequest<'_>,
    confirmation: &'a ConfirmationRecord,
) -> Result<Approver<'a>, Problem> {
    let principal = request.principal()?;
    Ok(Approver {
        token: request.parameter,
        proof: if request.is_admin() { AnswerProof::Transport } else { AnswerProof::Token },
        session: &confirmation.session,
        client_id: &confirmation.client_id,
        by: &principal.id,
        principal: request.caller()?.map(|principal| &**principal),
    })
}

/// `id` is that of the confirmation request.
pub(crate) fn to_problem(error: Error, id: &str) -> Problem {
    let (kind, detail) = match error {
        Error::Refused => return Problem::not_found("Confirmation request", id),
        Error::TokenRequired => (
            Kind::CONFIRMATION_TOKEN_REQUIRED,
            "Put the `confirmation_token` of the request into the path instead of its id, or ask an admin to answer.",
        ),
        Error::WrongToken => (
            Kind::CONFIRMATION_TOKEN_WRONG,
            "The token is wrong. If the call was sent again, only its newest token is valid.",
        ),
        Error::Answered => (
            Kind::CONFIRMATION_ANSWERED,
            "The confirmation request was answered already; read it for the answer.",
        ),
        Error::Expired => {
            (Kind::CONFIRMATION_EXPIRED, "The confirmation request has expired. The call can be made again.")
        }
        Error::Forbidden(message) => return Problem::new(Kind::FORBIDDEN, message),
        Error::Edited(message) => return Problem::new(Kind::UNPROCESSABLE, message),
        Error::Store(error) => return error.into(),
    };
    Problem::new(kind, detail)
}

/// The envelope of an answered call. If the effect of the call has changed, it waits for a new confirmation request: an
/// approver who has proved with the token to be the client gets the new token.
fn to_response(request: &ApiRequest<'_>, envelope: &Envelope) -> ApiResult {
    let has_token = request.parameter.contains('.');
    Ok(if has_token { json::response(&ClientEnvelope(envelope)) } else { json::response(envelope) })
}

async fn to_json(request: &ApiRequest<'_>, confirmation: &ConfirmationRecord) -> Result<Value, Problem> {
    Ok(json!({
        "confirmationId": confirmation.id,
        "sessionId": confirmation.session,
        "clientId": confirmation.client_id,
        "executionId": confirmation.execution,
        "callDigest": hex(&confirmation.digest),
        "tool": confirmation.tool,
        "toolVersion": confirmation.tool_version,
        "args": request.app.orchestrator.redacted_args(confirmation).await?,
        "preview": confirmation.preview,
        "answer": confirmation.status_at(request.app.orchestrator.now()),
        "decidedBy": confirmation.decided_by,
        "reason": confirmation.reason,
        "createdAt": confirmation.created_at,
        "expiresAt": confirmation.expires_at,
    }))
}
