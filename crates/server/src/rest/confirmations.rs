//! `/v1/confirmations`: confirmation requests and their answers. The session's principal and admins may answer.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_orchestrator::confirm::{Approver, Error, Proof};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord};

use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

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

/// Those of one session, or of all sessions that the caller may see.
pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [session] = request.query(["sessionId"])?;
    if let Some(session) = session.as_deref().filter(|_| !request.is_admin()) {
        request.own_session(session).await?;
    }
    let mut all = Vec::new();
    for pending in request.app.orchestrator.pending(session.as_deref()).await? {
        if request.is_admin() || request.own_session(&pending.session).await.is_ok() {
            all.push(to_json(&request, &pending).await?);
        }
    }
    Ok(json::response(&json!({ "confirmations": all })))
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
    Ok(json::response(&*envelope.map_err(to_problem)?))
}

pub(crate) async fn reject(mut request: ApiRequest<'_>) -> ApiResult {
    let RejectBody { reason } = request.read_json(&["reason"]).await?;
    let confirmation = find(&request).await?;
    let envelope = request.app.orchestrator.reject(&approver(&request, &confirmation)?, reason).await;
    Ok(json::response(&*envelope.map_err(to_problem)?))
}

/// The confirmation request that the path names by its id or its token, if the caller may see it.
async fn find(request: &ApiRequest<'_>) -> Result<Arc<ConfirmationRecord>, Problem> {
    let id = request.parameter.split('.').next().unwrap_or_default();
    let confirmation = request.app.orchestrator.store().confirmation(id).await?;
    let confirmation = confirmation.ok_or_else(|| Problem::not_found("confirmation"))?;
    if !request.is_admin() {
        request.own_session(&confirmation.session).await.map_err(|_| Problem::not_found("confirmation"))?;
    }
    Ok(confirmation)
}

/// The principal is authenticated by the transport; a token, where one is given, must be valid as well.
fn approver<'a>(
    request: &'a ApiRequest<'_>,
    confirmation: &'a ConfirmationRecord,
) -> Result<Approver<'a>, Problem> {
    Ok(Approver {
        token: request.parameter,
        proof: Proof::Transport,
        session: &confirmation.session,
        client_id: &confirmation.client_id,
        by: &request.principal()?.id,
    })
}

fn to_problem(error: Error) -> Problem {
    match error {
        Error::Refused => Problem::new(
            Kind::CONFLICT,
            "The confirmation request was answered already or has expired, or the token is wrong.",
        ),
        Error::Edited(message) => Problem::new(Kind::UNPROCESSABLE, message),
        Error::Store(error) => error.into(),
    }
}

async fn to_json(request: &ApiRequest<'_>, confirmation: &ConfirmationRecord) -> Result<Value, Problem> {
    Ok(json!({
        "confirmationId": confirmation.id,
        "sessionId": confirmation.session,
        "clientId": confirmation.client_id,
        "executionId": confirmation.execution,
        "tool": confirmation.tool,
        "toolVersion": confirmation.tool_version,
        "args": request.app.orchestrator.redacted_args(confirmation).await?,
        "preview": confirmation.preview,
        "answer": confirmation.status,
        "decidedBy": confirmation.decided_by,
        "reason": confirmation.reason,
        "createdAt": confirmation.created_at,
        "expiresAt": confirmation.expires_at,
    }))
}
