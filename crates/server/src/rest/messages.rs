//! `POST /v1/sessions/{sessionId}/messages`: a model's message in a provider's own form in, the messages with the
//! results of its calls out. For programs that run their own loop.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use toolwright_contract::{ConfirmationToken, Envelope, Failure, Meta, arguments};
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{CallRequest, ToolCall};
use toolwright_providers::{Call, Provider, ToolResult};

use super::audience::session_of;
use super::tools::parse_provider;
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

pub(crate) async fn answer(mut request: ApiRequest<'_>) -> ApiResult {
    let [provider] = request.query(["provider"])?;
    let provider = provider.ok_or_else(|| {
        let detail = "Name the form of the message with `?provider=`, such as `openai-chat`.";
        Problem::new(Kind::BAD_REQUEST, detail)
    });
    let provider = parse_provider(&provider?)?;
    let text = request.read_body().await?;
    let Message(message) = json::parse(&request.head.headers, &text, &[])?;
    let session = session_of(&request, request.parameter, None).await?;
    let mut calls = provider.read(&Value::Object(message));
    restore_arguments(&request, provider, &session, &mut calls).await;
    let envelopes = run(&request, &session, &calls).await?;
    let orchestrator = &request.app.orchestrator;
    let values: Vec<Value> =
        envelopes.iter().map(|envelope| orchestrator.for_model(&session, envelope)).collect();
    let results: Vec<ToolResult<'_>> =
        calls.iter().zip(&values).map(|(call, value)| ToolResult::from_model_value(call, value)).collect();
    let questions: Vec<Value> =
        calls.iter().zip(&envelopes).filter_map(|(call, envelope)| question(call, envelope)).collect();
    Ok(json::response(&json!({ "messages": provider.write(&results), "questions": questions })))
}

/// Any object: providers add fields, and only the calls are read. No member may be given twice.
struct Message(Map<String, Value>);

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        arguments::members(deserializer).map(Self)
    }
}

/// Parses the arguments that the provider's view declares as JSON text.
async fn restore_arguments(
    request: &ApiRequest<'_>,
    provider: &Provider,
    session: &SessionRecord,
    calls: &mut [Call],
) {
    let found = request.app.orchestrator.runtime_for(session).await;
    let Ok(Some(runtime)) = found else { return };
    let specs = calls.iter().filter_map(|call| runtime.toolset().metadata(&call.name));
    let view = provider.view(specs);
    calls.iter_mut().for_each(|call| view.restore(call));
}

/// The envelopes of all calls, in their order. A call with unreadable arguments does not run.
async fn run(
    request: &ApiRequest<'_>,
    session: &Arc<SessionRecord>,
    calls: &[Call],
) -> Result<Vec<Arc<Envelope>>, Problem> {
    let mut requests = Vec::new();
    for (position, Call { id, name, arguments }) in calls.iter().enumerate() {
        let Ok(args) = arguments else { continue };
        let call = ToolCall { id: id.clone(), tool: name.clone(), args: args.clone() };
        let mut call = CallRequest::new(session.id.as_str(), call).position(position);
        call.principal = request.caller()?.cloned();
        requests.push(call);
    }
    let mut ran = request.app.orchestrator.call_all(&session.id, requests, |_, _| {}).await.into_iter();
    let envelope = |call: &Call| match &call.arguments {
        Ok(_) => ran.next(),
        Err(invalid) => Some(Arc::new(unreadable(session, call, invalid.failure()))),
    };
    Ok(calls.iter().filter_map(envelope).collect())
}

fn unreadable(session: &SessionRecord, call: &Call, failure: Failure) -> Envelope {
    let meta = Meta {
        tool: call.name.clone(),
        tool_version: None,
        registry_version: session.registry_version().to_owned(),
        duration: 0,
        execution_id: call.id.clone().unwrap_or_default(),
        more: Map::new(),
    };
    Envelope { outcome: Err(failure), meta }
}

/// The confirmation request that a person has to answer before the call runs, with its token: for the program, not for
/// the model.
fn question(call: &Call, envelope: &Envelope) -> Option<Value> {
    let confirmation = envelope.outcome.as_ref().err()?.confirmation.as_deref()?;
    Some(json!({
        "confirmationId": confirmation.confirmation_id,
        "token": confirmation.token.as_ref().map(ConfirmationToken::reveal),
        "callId": call.id,
        "tool": confirmation.tool,
        "args": confirmation.args,
        "preview": confirmation.preview,
        "expiresAt": confirmation.expires_at,
    }))
}
