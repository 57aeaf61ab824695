//! `GET /v1/prompt`: the system prompt of a session, for programs that run their own loop.

use std::sync::Arc;

use serde_json::json;
use toolwright_contract::Mode;

use super::audience::session_of;
use super::tools::parse_mode;
use crate::json;
use crate::request::{ApiRequest, ApiResult, new_session};

pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let [mode, session] = request.query(["mode", "sessionId"])?;
    let mode = mode.as_deref().map(parse_mode).transpose()?;
    let orchestrator = &request.app.orchestrator;
    let session = match session {
        Some(id) => session_of(&request, &id, mode).await?,
        None => {
            let new = new_session(request.principal()?, mode.unwrap_or(Mode::Text));
            Arc::new(orchestrator.ephemeral_session(new))
        }
    };
    let runtime =
        orchestrator.runtime_for(&session).await.ok().flatten().unwrap_or_else(|| orchestrator.current());
    let prompt = request.app.options.prompts.compose(orchestrator, &runtime, &session);
    let version = &runtime.toolset().version;
    Ok(json::response(&json!({ "mode": session.mode, "version": version, "prompt": prompt })))
}
