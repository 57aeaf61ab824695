//! The way of nearly every call: a request that asks nobody and reports no progress. It is answered here, with the result
//! that the library would give, in a third of the time; whatever is not exactly of this form goes to the library, which
//! also says what is wrong with it. Both eras: a request that stands for itself, and one in a session.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName};
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, Implementation, RequestId};
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use toolwright_contract::arguments;
use toolwright_orchestrator::store::SessionStatus;
use toolwright_orchestrator::{CallRequest, Runtime, ToolCall};

use super::call::{begin_turn, cancelled, id_of};
use super::caller::{Caller, unreachable};
use super::catalog::{Catalog, Row};
use super::mount::{STATELESS, VERSION};
use super::shared::Shared;
use super::written::{Era, Told, failed, text};
use crate::counters::Counters;
use crate::dispatch::Answer;
use crate::json;

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
const CALL: &str = "tools/call";
/// Of a call that may take longer, a host in a session hears through a stream that it is not dead.
const QUIET_MS: f64 = 30_000.0;
/// The revisions with sessions whose results have this form.
const WITH_SESSIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "P: Deserialize<'de>"))]
struct Request<'a, P> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    params: P,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alone<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, deserialize_with = "arguments::members")]
    arguments: Map<String, Value>,
    #[serde(borrow, rename = "_meta")]
    meta: RequestMeta<'a>,
}

/// What every request of the later era says, and nothing else: no progress to be told, no name of the call, no trace.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: &'a str,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    _client: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    _capabilities: ClientCapabilities,
}

/// No `_meta`, in which progress would be asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InSession<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, deserialize_with = "arguments::members")]
    arguments: Map<String, Value>,
}

/// The answer to a POST, if it is of the form that is answered here.
pub(super) async fn answer(
    shared: &Shared,
    headers: &HeaderMap,
    caller: &Caller,
    body: &Bytes,
) -> Option<Answer> {
    let text = match &caller.session {
        None => alone(shared, headers, caller, body).await?,
        Some(session) => in_session(shared, headers, session, body).await?,
    };
    Some(Ok(json::answer_of(text)))
}

async fn alone(shared: &Shared, headers: &HeaderMap, caller: &Caller, body: &Bytes) -> Option<Vec<u8>> {
    let Request { id, params: Alone { name, arguments, .. }, .. } = read_alone(headers, body)?;
    let runtime = shared.orchestrator.current();
    let catalog = shared.catalog(&runtime);
    let row = plain(&runtime, &catalog, &name)?;
    let _counted = Counters::begin(&shared.calls);
    let call = ToolCall { id: None, tool: name.into_owned(), args: Value::Object(arguments) };
    let own = caller.begin(None, shared.mode);
    Some(match shared.orchestrator.session_for(own, &call).await {
        Ok(session) => {
            let envelope = shared.orchestrator.call(CallRequest::new(session, call)).await;
            let words = || shared.orchestrator.for_model_ephemeral(shared.mode, &envelope);
            text(&Told { row, id: &id, envelope: &envelope, left: None, era: Era::Stateless }, words)
        }
        Err(error) => failed(&id, &unreachable(error)),
    })
}

async fn in_session(
    shared: &Shared,
    headers: &HeaderMap,
    name_of_session: &Arc<str>,
    body: &Bytes,
) -> Option<Vec<u8>> {
    let Request { id, params: InSession { name, arguments }, .. } = read_in_session(headers, body)?;
    // As it is now: the body may have taken its time.
    let session = shared.orchestrator.session(name_of_session).await.ok()??;
    let runtime = shared.orchestrator.runtime_for(&session)?;
    let catalog = shared.catalog(&runtime);
    let row = plain(&runtime, &catalog, &name)?;
    let spec = runtime.toolset().metadata(&name)?;
    let is_patient = spec.timeout_ms.as_ref().and_then(Number::as_f64).is_some_and(|most| most > QUIET_MS);
    if is_patient || session.status != SessionStatus::Active {
        return None;
    }
    let mut running = shared.sessions.enter(name_of_session, &id)?;
    let _counted = Counters::begin(&shared.calls);
    let call = ToolCall { id: Some(id_of(&id)), tool: name.into_owned(), args: Value::Object(arguments) };
    let performed = async {
        let (session, left) = begin_turn(&shared.orchestrator, session, Some(row)).await?;
        let envelope = shared.orchestrator.call(CallRequest::new(Arc::clone(&session), call)).await;
        let words = || shared.orchestrator.for_model(&session, &envelope);
        Ok(text(&Told { row, id: &id, envelope: &envelope, left, era: Era::Sessions }, words))
    };
    let text = tokio::select! {
        text = performed => text,
        () = running.cancelled() => Err(cancelled()),
    };
    Some(text.unwrap_or_else(|error: ErrorData| failed(&id, &error)))
}

/// A tool that asks nobody and compares no headers.
fn plain<'c>(runtime: &Runtime, catalog: &'c Catalog, name: &str) -> Option<&'c Row> {
    runtime.toolset().metadata(name).filter(|spec| spec.requires_confirmation.is_never())?;
    catalog.get(name).filter(|row| !row.has_headers)
}

/// The request, if it stands for itself and is of the form.
fn read_alone<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<Request<'a, Alone<'a>>> {
    let is_plain = only(headers, &VERSION) == Some(STATELESS.as_bytes())
        && only(headers, &METHOD) == Some(CALL.as_bytes())
        && takes_both(headers);
    let request: Request<'_, Alone<'_>> = is_plain.then(|| read(body))??;
    let params = &request.params;
    let is_as_told = params.meta.version == STATELESS && only(headers, &NAME) == Some(params.name.as_bytes());
    is_as_told.then_some(request)
}

/// The request, if it is of the form in a session.
fn read_in_session<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<Request<'a, InSession<'a>>> {
    let version = only(headers, &VERSION)?;
    let is_plain = WITH_SESSIONS.iter().any(|known| known.as_bytes() == version) && takes_both(headers);
    is_plain.then(|| read(body))?
}

fn read<'a, P: Deserialize<'a>>(body: &'a [u8]) -> Option<Request<'a, P>> {
    let request: Request<'_, P> = serde_json::from_slice(body).ok()?;
    (request.jsonrpc == "2.0" && request.method == CALL).then_some(request)
}

/// JSON, from a host that takes both JSON and a stream.
fn takes_both(headers: &HeaderMap) -> bool {
    let has = |name, part: &str| {
        headers.get(name).is_some_and(|value| value.to_str().is_ok_and(|value| value.contains(part)))
    };
    let is_json =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    is_json && has(ACCEPT, "application/json") && has(ACCEPT, "text/event-stream")
}

/// The one value of a header.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
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
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", CALL),
        ("mcp-name", "echo"),
    ];

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn plain() -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "method": CALL, "params": {
            "name": "echo", "arguments": { "message": "hi" }, "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1", "title": "Host" },
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } } } })
    }

    #[test]
    fn a_plain_call_is_answered_here_and_nothing_else() {
        let headers_of_call = headers(&HEADERS);
        let is_read =
            |headers: &HeaderMap, body: &Value| read_alone(headers, body.to_string().as_bytes()).is_some();
        assert!(is_read(&headers_of_call, &plain()));
        for at in 0..HEADERS.len() {
            let mut fewer = HEADERS.to_vec();
            let left_out = fewer.remove(at);
            assert!(!is_read(&headers(&fewer), &plain()), "without {left_out:?}");
        }
        let twice = headers(&[&HEADERS[..], &[("mcp-name", "other")]].concat());
        assert!(!is_read(&twice, &plain()));
        for (pointer, value) in [
            ("/jsonrpc", json!("1.0")),
            ("/id", Value::Null),
            ("/method", json!("tools/list")),
            ("/params/name", json!("other")),
            ("/params/arguments", json!([])),
            ("/params/_meta", json!({})),
            ("/params/_meta/io.modelcontextprotocol~1protocolVersion", json!("2025-11-25")),
            ("/params/_meta/io.modelcontextprotocol~1clientCapabilities", json!(null)),
        ] {
            let mut other = plain();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!is_read(&headers_of_call, &other), "{pointer}");
        }
        for more in ["progressToken", "traceparent", "toolwright/executionId"] {
            let mut other = plain();
            other["params"]["_meta"][more] = json!("x");
            assert!(!is_read(&headers_of_call, &other), "{more}");
        }
        let mut resumed = plain();
        resumed["params"]["requestState"] = json!("conf_1.secret");
        assert!(!is_read(&headers_of_call, &resumed));
    }

    #[test]
    fn a_plain_call_in_a_session_is_answered_here_and_nothing_else() {
        const OF_CALL: [(&str, &str); 3] = [HEADERS[0], HEADERS[1], ("mcp-protocol-version", "2025-11-25")];
        let is_read = |headers: &HeaderMap, body: &Value| {
            read_in_session(headers, body.to_string().as_bytes()).is_some()
        };
        let call = || json!({ "jsonrpc": "2.0", "id": "a", "method": CALL, "params": { "name": "echo" } });
        let headers_of_call = headers(&OF_CALL);
        assert!(is_read(&headers_of_call, &call()));
        assert!(is_read(
            &headers(&[OF_CALL[0], OF_CALL[1], ("mcp-protocol-version", "2025-06-18")]),
            &call()
        ));
        for at in 0..OF_CALL.len() {
            let mut fewer = OF_CALL.to_vec();
            let left_out = fewer.remove(at);
            assert!(!is_read(&headers(&fewer), &call()), "without {left_out:?}");
        }
        for version in [STATELESS, "2025-03-26", "2024-11-05", "1"] {
            let other = headers(&[OF_CALL[0], OF_CALL[1], ("mcp-protocol-version", version)]);
            assert!(!is_read(&other, &call()), "{version}");
        }
        for (member, value) in [
            ("_meta", json!({ "progressToken": 1 })),
            ("arguments", json!([])),
            ("task", json!({})),
            ("requestState", json!("conf_1.secret")),
        ] {
            let mut other = call();
            other["params"][member] = value;
            assert!(!is_read(&headers_of_call, &other), "{member}");
        }
        let batch = json!([call(), call()]);
        assert!(!is_read(&headers_of_call, &batch));
    }
}
