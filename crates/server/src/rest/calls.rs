//! `POST /v1/tools/{toolId}/call`: answered with an envelope, whether the call succeeds or fails.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_contract::{ClientEnvelope, Mode, arguments};
use toolwright_orchestrator::{CallRequest, SessionRef, ToolCall};

use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult, new_session};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallBody {
    #[serde(default = "no_arguments", deserialize_with = "arguments::value")]
    args: Value,
    mode: Option<Mode>,
    session_id: Option<String>,
    execution_id: Option<String>,
}

const FIELDS: [&str; 4] = ["args", "mode", "sessionId", "executionId"];

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

pub(crate) async fn call_tool(mut request: ApiRequest<'_>) -> ApiResult {
    let is_for_model = is_for_model(&request)?;
    let CallBody { args, mode, session_id, execution_id } = request.read_json(&FIELDS).await?;
    let call = ToolCall { id: execution_id, tool: request.parameter.to_owned(), args };
    let orchestrator = &request.app.orchestrator;
    let session = match session_id {
        Some(id) => {
            let session = request.own_session(&id).await?;
            if let Some(mode) = mode.filter(|mode| *mode != session.mode) {
                let detail = format!("The session's mode is {}, not {mode}. Leave out `mode`.", session.mode);
                return Err(Problem::new(Kind::CONFLICT, detail));
            }
            SessionRef::Loaded(session)
        }
        None => {
            let session = new_session(request.principal()?, mode.unwrap_or(Mode::Text));
            orchestrator.session_for(session, &call).await?
        }
    };
    let mut call = CallRequest::new(session, call);
    call.principal = request.caller()?.cloned();
    let envelope = orchestrator.call(call).await;
    // The serialization of the envelope itself has no token.
    Ok(if is_for_model { json::response(&*envelope) } else { json::response(&ClientEnvelope(&envelope)) })
}

/// `for=model` leaves out the confirmation token: the response can go to a model as it is.
fn is_for_model(request: &ApiRequest<'_>) -> Result<bool, Problem> {
    let [reader] = request.query(["for"])?;
    match reader.as_deref() {
        None => Ok(false),
        Some("model") => Ok(true),
        Some(other) => {
            let detail = format!("The query parameter `for` must be `model` or absent, not `{other}`.");
            Err(Problem::new(Kind::BAD_REQUEST, detail))
        }
    }
}
