//! A call that the console makes for its user, in a session of its own.

use std::sync::Arc;

use serde_json::Value;
use toolwright_contract::{Envelope, Mode};
use toolwright_orchestrator::{CallRequest, SessionRef, ToolCall};

use crate::auth::keys;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, new_session};

/// The result of a call, and the session that has it.
pub(super) struct OwnCall {
    pub session: String,
    pub envelope: Arc<Envelope>,
}

/// Calls a tool as the sender of the request.
pub(super) async fn call(
    request: &ApiRequest<'_>,
    tool: &str,
    args: Value,
    mode: Mode,
) -> Result<OwnCall, Problem> {
    let orchestrator = &request.app.orchestrator;
    let call = ToolCall { id: None, tool: tool.to_owned(), args };
    let random = keys::random::<12>().map_err(|_| Problem::new(Kind::UNAVAILABLE, "Try again."))?;
    let mut new = new_session(request.principal()?, mode);
    new.id = Some(format!("own_{random}"));
    let session = orchestrator.session_for(new, &call).await?;
    let id = match &session {
        SessionRef::Id(id) => id.clone(),
        SessionRef::Loaded(session) => session.id.clone(),
        SessionRef::Ephemeral(new) => new.id.clone().unwrap_or_default(),
    };
    let mut call = CallRequest::new(session, call);
    call.principal = request.caller()?.cloned();
    Ok(OwnCall { session: id, envelope: orchestrator.call(call).await })
}
