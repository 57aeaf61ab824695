//! `/v1/confirmations`: the questions to people, and their answers. Whoever owns the session may answer, and an admin.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_orchestrator::confirm::{Approver, Error, Proof};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord};

use crate::dispatch::{Answer, Asked};
use crate::json::{self, Form};
use crate::problem::{Kind, Problem};
use crate::rest::sessions;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Yes {
    args: Option<Value>,
    #[serde(default)]
    remember: bool,
}

impl Form for Yes {
    const FIELDS: &'static [&'static str] = &["args", "remember"];
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct No {
    reason: Option<String>,
}

impl Form for No {
    const FIELDS: &'static [&'static str] = &["reason"];
}

/// Those of one session, or of all sessions that the asker may see.
pub(crate) async fn list(asked: &Asked<'_>) -> Answer {
    let [session] = asked.query(["sessionId"])?;
    if let Some(session) = session.as_deref().filter(|_| !asked.is_admin()) {
        sessions::own(asked, session).await?;
    }
    let mut all = Vec::new();
    for waiting in asked.app.orchestrator.pending(session.as_deref()).await? {
        if asked.is_admin() || sessions::own(asked, &waiting.session).await.is_ok() {
            all.push(shown(asked, &waiting).await?);
        }
    }
    Ok(json::answer(&json!({ "confirmations": all })))
}

pub(crate) async fn get(asked: &Asked<'_>) -> Answer {
    let question = visible(asked).await?;
    Ok(json::answer(&shown(asked, &question).await?))
}

pub(crate) async fn approve(mut asked: Asked<'_>) -> Answer {
    let Yes { args, remember } = asked.form().await?;
    if remember && args.is_some() {
        let detail = "`remember` is about the call as it was asked: leave `args` out.";
        return Err(Problem::new(Kind::Unprocessable, detail));
    }
    let question = visible(&asked).await?;
    let answerer = answerer(&asked, &question)?;
    let orchestrator = &asked.app.orchestrator;
    let envelope = if remember {
        orchestrator.approve_and_remember(&answerer).await
    } else {
        orchestrator.approve(&answerer, args).await
    };
    Ok(json::answer(&*envelope.map_err(refused)?))
}

pub(crate) async fn reject(mut asked: Asked<'_>) -> Answer {
    let No { reason } = asked.form().await?;
    let question = visible(&asked).await?;
    let envelope = asked.app.orchestrator.reject(&answerer(&asked, &question)?, reason).await;
    Ok(json::answer(&*envelope.map_err(refused)?))
}

/// The question of the path, which may be named by its id or by its token.
async fn visible(asked: &Asked<'_>) -> Result<Arc<ConfirmationRecord>, Problem> {
    let id = asked.parameter.split('.').next().unwrap_or_default();
    let question = asked.app.orchestrator.store().confirmation(id).await?;
    let question = question.ok_or_else(|| Problem::not_found("confirmation"))?;
    if !asked.is_admin() {
        sessions::own(asked, &question.session).await.map_err(|_| Problem::not_found("confirmation"))?;
    }
    Ok(question)
}

/// The transport has authenticated the person; a token that is given must be right even so.
fn answerer<'a>(asked: &'a Asked<'_>, question: &'a ConfirmationRecord) -> Result<Approver<'a>, Problem> {
    Ok(Approver {
        token: asked.parameter,
        proof: Proof::Transport,
        session: &question.session,
        client_id: &question.client_id,
        by: &asked.principal()?.id,
    })
}

fn refused(error: Error) -> Problem {
    match error {
        Error::Refused => {
            Problem::new(Kind::Conflict, "It was answered already, has expired, or the token is wrong.")
        }
        Error::Edited(message) => Problem::new(Kind::Unprocessable, message),
        Error::Store(error) => error.into(),
    }
}

async fn shown(asked: &Asked<'_>, question: &ConfirmationRecord) -> Result<Value, Problem> {
    Ok(json!({
        "confirmationId": question.id,
        "sessionId": question.session,
        "clientId": question.client_id,
        "executionId": question.execution,
        "tool": question.tool,
        "toolVersion": question.tool_version,
        "args": asked.app.orchestrator.redacted_args(question).await?,
        "preview": question.preview,
        "answer": question.status,
        "decidedBy": question.decided_by,
        "reason": question.reason,
        "createdAt": question.created_at,
        "expiresAt": question.expires_at,
    }))
}
