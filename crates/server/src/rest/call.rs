//! `POST /v1/tools/{toolId}/call`: the busy path. An envelope, whatever comes of the call.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_contract::{Mode, arguments};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{CallRequest, SessionRef, ToolCall};

use crate::dispatch::{Answer, Asked};
use crate::json::{self, Form};
use crate::problem::{Kind, Problem};
use crate::rest::sessions;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Call {
    #[serde(default = "no_arguments", deserialize_with = "arguments::value")]
    args: Value,
    mode: Option<Mode>,
    session_id: Option<String>,
    execution_id: Option<String>,
}

impl Form for Call {
    const FIELDS: &'static [&'static str] = &["args", "mode", "sessionId", "executionId"];
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

pub(crate) async fn run(mut asked: Asked<'_>) -> Answer {
    let Call { args, mode, session_id, execution_id } = asked.form().await?;
    let call = ToolCall { id: execution_id, tool: asked.parameter.to_owned(), args };
    let orchestrator = &asked.app.orchestrator;
    let session = match session_id {
        Some(id) => {
            let session = sessions::own(&asked, &id).await?;
            if let Some(mode) = mode.filter(|mode| *mode != session.mode) {
                let detail = format!("The session's mode is {}, not {mode}. Leave `mode` out.", session.mode);
                return Err(Problem::new(Kind::Conflict, detail));
            }
            SessionRef::Loaded(session)
        }
        None => {
            let principal = (**asked.principal()?).clone();
            let new = NewSession {
                id: None,
                client_id: principal.id.clone(),
                principal,
                mode: mode.unwrap_or(Mode::Text),
                state: Map::new(),
            };
            orchestrator.session_for(new, &call).await?
        }
    };
    let envelope = orchestrator.call(CallRequest::new(session, call)).await;
    let mut text = Vec::with_capacity(512);
    envelope.write(&mut text);
    Ok(json::answer_of(text))
}
