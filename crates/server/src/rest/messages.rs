//! `POST /v1/sessions/{sessionId}/messages`: a model's message in a provider's own form in, the messages with the
//! results of its calls out. For programs that run their own loop.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use toolwright_contract::{ConfirmationToken, Envelope, arguments};
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{CallRequest, Runtime, ToolCall};
use toolwright_providers::{Call, Provider, ToolResult};
use toolwright_registry::toolset::Toolset;

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
    let runtime = request.app.orchestrator.runtime_for(&session).await.ok().flatten();
    let toolset = runtime.as_ref().map(Runtime::toolset);
    if let Some(toolset) = toolset {
        restore_arguments(provider, toolset, &mut calls);
    }
    let envelopes = run(&request, &session, &calls).await?;
    let orchestrator = &request.app.orchestrator;
    let values: Vec<Value> =
        envelopes.iter().map(|envelope| orchestrator.for_model(&session, envelope)).collect();
    let results = calls.iter().zip(&values).map(|(call, value)| {
        let result = ToolResult::from_model_value(call, value);
        match toolset.and_then(|toolset| toolset.metadata(&call.name)) {
            Some(spec) => result.of_tool(spec),
            None => result,
        }
    });
    let results: Vec<ToolResult<'_>> = results.collect();
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
fn restore_arguments(provider: &Provider, toolset: &Toolset, calls: &mut [Call]) {
    let specs = calls.iter().filter_map(|call| toolset.metadata(&call.name));
    let view = provider.view(specs);
    calls.iter_mut().for_each(|call| view.restore(call));
}

/// The envelopes of all calls, in their order. A call with unreadable arguments is refused.
async fn run(
    request: &ApiRequest<'_>,
    session: &Arc<SessionRecord>,
    calls: &[Call],
) -> Result<Vec<Arc<Envelope>>, Problem> {
    let mut requests = Vec::new();
    for (position, Call { id, name, arguments }) in calls.iter().enumerate() {
        let (args, refusal) = match arguments {
            Ok(args) => (args.clone(), None),
            Err(invalid) => (invalid.text.as_str().into(), Some(invalid.failure())),
        };
        let call = ToolCall { id: id.clone(), tool: name.clone(), args };
        // Each call reads the session again: the one before may have changed it.
        let mut call = CallRequest::new(session.id.as_str(), call).position(position);
        call.principal = request.caller()?.cloned();
        call.refusal = refusal;
        requests.push(call);
    }
    Ok(request.app.orchestrator.calls(session, requests, |_, _| {}).await)
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
