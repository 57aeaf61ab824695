//! The results of calls that the client runs itself.

use std::sync::Arc;

use serde_json::json;

use crate::conversation::LoggedTurn;
use crate::error::Error;
use crate::event::ToolResultPart;
use crate::request::ClientResult;

/// The results that are new. A result that was sent before is left out; one of an unknown call is an error.
pub(crate) fn parts(turn: &LoggedTurn, results: Vec<ClientResult>) -> Result<Vec<ToolResultPart>, Error> {
    let mut parts = Vec::new();
    for ClientResult { call_id, content, is_error } in results {
        let call = turn.reply.tools().find(|tool| tool.call.id == call_id && tool.call.is_client_tool);
        let Some(call) = call else { return Err(Error::UnknownClientCall(call_id)) };
        if call.result.is_some() {
            continue;
        }
        let content = match is_error {
            true => json!({ "ok": false, "error": content, "type": "PERMANENT", "retryable": false }),
            false => json!({ "ok": true, "data": content }),
        };
        let tool = call.call.tool.clone();
        let content = Arc::new(content);
        parts.push(ToolResultPart {
            call_id,
            tool,
            content,
            is_error,
            is_declined: false,
            duration_ms: 0,
            task: None,
        });
    }
    Ok(parts)
}
