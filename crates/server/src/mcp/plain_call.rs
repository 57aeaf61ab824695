//! Plain calls, answered without the library: requests of one known form, for tools that need no confirmation, without
//! progress. Any other request, and any invalid one, goes to the library. Both ways share the decoder of the arguments,
//! the execution and the reply; this one avoids the library's parsing, tasks and channels (decision 0004).

use std::borrow::Cow;

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName};
use rmcp::model::{
    ClientCapabilities, Implementation, JsonRpcError, JsonRpcResponse, JsonRpcVersion2_0, RequestId,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use toolwright_contract::object::{self, ObjectOnly};
use toolwright_contract::{ToolSpec, arguments};
use toolwright_orchestrator::ToolCall;

use super::caller::Caller;
use super::http::{McpService, PROTOCOL_VERSION, STATELESS_REVISION};
use super::message;
use super::running_calls::RunningCall;
use super::tool_call::{CallScope, cancelled, execution_id};
use crate::counters::Counters;
use crate::json;

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
const TOOLS_CALL: &str = "tools/call";
/// In a session, a call that may take longer goes to the library, whose stream keeps the connection alive.
const MAX_TIMEOUT_MS: f64 = 30_000.0;
/// The revisions with sessions whose results have this form.
const SESSION_REVISIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCall<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    #[serde(borrow, deserialize_with = "object::only")]
    params: PlainParams<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, deserialize_with = "arguments::members")]
    arguments: Map<String, Value>,
    #[serde(borrow, default, rename = "_meta", deserialize_with = "object::only_some")]
    meta: Option<RequestMeta<'a>>,
}

/// The members that every stateless request has, and no others: no progress token, no execution id, no trace.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: &'a str,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", deserialize_with = "object::only")]
    _client: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "read_capabilities")]
    _capabilities: ClientCapabilities,
}

/// Capabilities in which no array is where an object belongs.
fn read_capabilities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ClientCapabilities, D::Error> {
    let capabilities: Value = object::only(deserializer)?;
    if message::array_in_capabilities(&capabilities).is_some() {
        return Err(D::Error::custom("an array instead of an object"));
    }
    serde_json::from_value(capabilities).map_err(D::Error::custom)
}

/// The reply to a POST, if it is a plain call.
pub(super) async fn answer(
    service: &McpService,
    headers: &HeaderMap,
    caller: &Caller,
    body: &Bytes,
) -> Option<Vec<u8>> {
    let session = caller.session.as_ref();
    let PlainCall { id, params, .. } = decode(headers, session.is_some(), body)?;
    let state = &service.state;
    let runtime = state.runtime(session.map(|session| &**session)).await;
    let catalog = state.catalog(&runtime);
    let spec = runtime.toolset().metadata(&params.name)?;
    let tool = catalog.get(&params.name).filter(|tool| !tool.has_headers)?;
    if !spec.requires_confirmation.is_never() {
        return None;
    }
    let running = match session {
        Some(session) if !is_slow(spec) && service.touch(session).await => {
            Some(state.running_calls.begin(&session.id, &id)?)
        }
        Some(_) => return None,
        None => None,
    };
    let _counted = Counters::begin(&state.call_count);
    let mut scope = CallScope { state, caller, session: session.cloned(), tool: Some(tool) };
    let call = ToolCall {
        id: session.map(|_| execution_id(&id)),
        tool: params.name.into_owned(),
        args: Value::Object(params.arguments),
    };
    let executed = async {
        let message = scope.begin_turn(None).await?;
        let envelope = scope.execute(call, None).await?;
        let mut reply = scope.reply(&envelope, message);
        reply.result_type = session.is_none().then_some("complete");
        Ok(json::to_text(&JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id: id.clone(), result: reply }))
    };
    let reply = tokio::select! {
        reply = executed => reply,
        () = cancellation(running) => Err(cancelled()),
    };
    Some(reply.unwrap_or_else(|error| json::to_text(&JsonRpcError::new(Some(id), error))))
}

/// Resolves when the call is cancelled. A stateless call ends with its connection and cannot be cancelled otherwise.
async fn cancellation(running: Option<RunningCall<'_>>) {
    match running {
        Some(mut running) => running.cancelled().await,
        None => std::future::pending().await,
    }
}

fn is_slow(spec: &ToolSpec) -> bool {
    spec.timeout_ms.as_ref().and_then(Number::as_f64).is_some_and(|timeout| timeout > MAX_TIMEOUT_MS)
}

/// The call, if headers and body have the plain form of its revision.
fn decode<'a>(headers: &HeaderMap, in_session: bool, body: &'a [u8]) -> Option<PlainCall<'a>> {
    let revision = single(headers, &PROTOCOL_VERSION)?;
    let is_plain = match in_session {
        true => SESSION_REVISIONS.iter().any(|known| known.as_bytes() == revision),
        false => {
            revision == STATELESS_REVISION.as_bytes()
                && single(headers, &METHOD) == Some(TOOLS_CALL.as_bytes())
        }
    };
    if !is_plain || !has_plain_media_types(headers) {
        return None;
    }
    let ObjectOnly::<PlainCall<'_>>(call) = serde_json::from_slice(body).ok()?;
    arguments::check_integers(body).ok()?;
    let PlainParams { name, meta, .. } = &call.params;
    let is_consistent = match meta {
        None => in_session,
        Some(meta) => {
            !in_session
                && meta.version == STATELESS_REVISION
                && single(headers, &NAME) == Some(name.as_bytes())
        }
    };
    (is_consistent && call.jsonrpc == "2.0" && call.method == TOOLS_CALL).then_some(call)
}

/// A JSON body, from an MCP host that accepts JSON and event streams, as the protocol requires.
fn has_plain_media_types(headers: &HeaderMap) -> bool {
    let accepts = |media_type: &str| {
        headers.get(ACCEPT).is_some_and(|value| value.to_str().is_ok_and(|value| value.contains(media_type)))
    };
    let is_json =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    is_json && accepts("application/json") && accepts("text/event-stream")
}

/// The value of a header that is given exactly once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HEADERS: [(&str, &str); 5] = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", STATELESS_REVISION),
        ("mcp-method", TOOLS_CALL),
        ("mcp-name", "echo"),
    ];

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn plain_call() -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "method": TOOLS_CALL, "params": {
            "name": "echo", "arguments": { "message": "hi" }, "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS_REVISION,
                "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1", "title": "Host" },
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } } } })
    }

    #[test]
    fn only_plain_stateless_calls_are_decoded() {
        let complete = headers(&HEADERS);
        let is_decoded =
            |headers: &HeaderMap, body: &Value| decode(headers, false, body.to_string().as_bytes()).is_some();
        assert!(is_decoded(&complete, &plain_call()));
        for index in 0..HEADERS.len() {
            let mut fewer = HEADERS.to_vec();
            let left_out = fewer.remove(index);
            assert!(!is_decoded(&headers(&fewer), &plain_call()), "without {left_out:?}");
        }
        let twice = headers(&[&HEADERS[..], &[("mcp-name", "other")]].concat());
        assert!(!is_decoded(&twice, &plain_call()));
        for (pointer, value) in [
            ("/jsonrpc", json!("1.0")),
            ("/id", Value::Null),
            ("/method", json!("tools/list")),
            ("/params/name", json!("other")),
            ("/params/arguments", json!([])),
            ("/params/_meta", json!({})),
            ("/params/_meta/io.modelcontextprotocol~1protocolVersion", json!("2025-11-25")),
            ("/params/_meta/io.modelcontextprotocol~1clientCapabilities", json!(null)),
            ("/params/_meta/io.modelcontextprotocol~1clientCapabilities/elicitation", json!([])),
            ("/params/_meta/io.modelcontextprotocol~1clientCapabilities/elicitation", json!({ "form": [] })),
        ] {
            let mut other = plain_call();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!is_decoded(&complete, &other), "{pointer}");
        }
        for more in ["progressToken", "traceparent", "toolwright/executionId"] {
            let mut other = plain_call();
            other["params"]["_meta"][more] = json!("x");
            assert!(!is_decoded(&complete, &other), "{more}");
        }
        let mut resumed = plain_call();
        resumed["params"]["requestState"] = json!("conf_1.secret");
        assert!(!is_decoded(&complete, &resumed));
    }

    #[test]
    fn only_plain_calls_in_a_session_are_decoded() {
        const SESSION_HEADERS: [(&str, &str); 3] =
            [HEADERS[0], HEADERS[1], ("mcp-protocol-version", "2025-11-25")];
        let is_decoded =
            |headers: &HeaderMap, body: &Value| decode(headers, true, body.to_string().as_bytes()).is_some();
        let call =
            || json!({ "jsonrpc": "2.0", "id": "a", "method": TOOLS_CALL, "params": { "name": "echo" } });
        let complete = headers(&SESSION_HEADERS);
        assert!(is_decoded(&complete, &call()));
        assert!(is_decoded(
            &headers(&[SESSION_HEADERS[0], SESSION_HEADERS[1], ("mcp-protocol-version", "2025-06-18")]),
            &call()
        ));
        for index in 0..SESSION_HEADERS.len() {
            let mut fewer = SESSION_HEADERS.to_vec();
            let left_out = fewer.remove(index);
            assert!(!is_decoded(&headers(&fewer), &call()), "without {left_out:?}");
        }
        for version in [STATELESS_REVISION, "2025-03-26", "2024-11-05", "1"] {
            let other = headers(&[SESSION_HEADERS[0], SESSION_HEADERS[1], ("mcp-protocol-version", version)]);
            assert!(!is_decoded(&other, &call()), "{version}");
        }
        for (member, value) in [
            ("_meta", json!({ "progressToken": 1 })),
            ("arguments", json!([])),
            ("task", json!({})),
            ("requestState", json!("conf_1.secret")),
        ] {
            let mut other = call();
            other["params"][member] = value;
            assert!(!is_decoded(&complete, &other), "{member}");
        }
        let batch = json!([call(), call()]);
        assert!(!is_decoded(&complete, &batch));
    }
}
