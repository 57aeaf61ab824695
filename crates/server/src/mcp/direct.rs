//! The way of nearly every call of the later era: a request that stands for itself, asks nobody and reports no progress. It
//! is answered here, with the bytes that the library would answer with, in a third of the time; whatever is not exactly of
//! this form goes to the library, which also says what is wrong with it.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName};
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, Implementation, RequestId};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_contract::json::{write_string, write_value};
use toolwright_contract::{Envelope, Meta, arguments};
use toolwright_orchestrator::ToolCall;

use super::caller::{Caller, unreachable};
use super::catalog::Row;
use super::declare::WRAP;
use super::mount::{STATELESS, VERSION};
use super::result::META;
use super::shared::Shared;
use crate::counters::Counters;
use crate::dispatch::{Answer, Asked};
use crate::json;

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
const CALL: &str = "tools/call";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, deserialize_with = "arguments::members")]
    arguments: Map<String, Value>,
    #[serde(borrow, rename = "_meta")]
    meta: RequestMeta<'a>,
}

/// What every request of this era says, and nothing else: no progress to be told, no name of the call, no trace.
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

/// The answer, if the request is of the form that is answered here.
pub(super) async fn answer(
    shared: &Shared,
    asked: &Asked<'_>,
    caller: &Caller,
    body: &Bytes,
) -> Option<Answer> {
    if asked.head.method != Method::POST || caller.session.is_some() {
        return None;
    }
    let Request { id, params: Params { name, arguments, .. }, .. } = read(&asked.head.headers, body)?;
    let runtime = shared.orchestrator.current();
    runtime.toolset().metadata(&name).filter(|spec| spec.requires_confirmation.is_never())?;
    let catalog = shared.catalog(&runtime);
    let row = catalog.get(&name).filter(|row| !row.has_headers)?;
    let _counted = Counters::begin(&shared.calls);
    let call = ToolCall { id: None, tool: name.into_owned(), args: Value::Object(arguments) };
    let own = caller.begin(None, shared.mode);
    let text = match shared.orchestrator.call_once(own, call).await {
        Ok(envelope) => text(shared, row, &id, &envelope),
        Err(error) => failed(&id, &unreachable(error)),
    };
    Some(Ok(json::answer_of(text)))
}

/// The answer to a call that did not reach the orchestrator's store.
fn failed(id: &RequestId, error: &ErrorData) -> Vec<u8> {
    serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}

/// The request, if it is of the form.
fn read<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<Request<'a>> {
    let request: Request<'_> = is_plain(headers).then(|| serde_json::from_slice(body).ok())??;
    let is_as_told = request.jsonrpc == "2.0"
        && request.method == CALL
        && request.params.meta.version == STATELESS
        && only(headers, &NAME) == Some(request.params.name.as_bytes());
    is_as_told.then_some(request)
}

/// Whether the headers are those of such a request.
fn is_plain(headers: &HeaderMap) -> bool {
    let has = |name, part: &str| {
        headers.get(name).is_some_and(|value| value.to_str().is_ok_and(|value| value.contains(part)))
    };
    let is_json =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    only(headers, &VERSION) == Some(STATELESS.as_bytes())
        && only(headers, &METHOD) == Some(CALL.as_bytes())
        && is_json
        && has(ACCEPT, "application/json")
        && has(ACCEPT, "text/event-stream")
}

/// The one value of a header.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.as_bytes())
}

fn text(shared: &Shared, row: &Row, id: &RequestId, envelope: &Envelope) -> Vec<u8> {
    let mut told = Vec::with_capacity(512);
    let words;
    let (data, has_structure) = match &envelope.outcome {
        Ok(success) => (&*success.data, true),
        Err(_) => {
            words = shared.orchestrator.for_model_once(shared.mode, envelope);
            // A tool that says what its data looks like must not answer with anything else.
            (&words, row.tool.output_schema.is_none())
        }
    };
    write_value(data, &mut told);
    let mut out = Vec::with_capacity(256 + 3 * told.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    // A number or a text: it always can be written.
    let _ = serde_json::to_writer(&mut out, id);
    out.extend_from_slice(
        b",\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":",
    );
    match data {
        Value::String(_) => out.extend_from_slice(&told),
        // It was made of texts.
        _ => write_string(std::str::from_utf8(&told).unwrap_or_default(), &mut out),
    }
    out.extend_from_slice(b"}]");
    if has_structure {
        out.extend_from_slice(b",\"structuredContent\":");
        let wraps = envelope.is_ok() && (row.wraps || !data.is_object());
        if wraps {
            out.extend_from_slice(b"{\"");
            out.extend_from_slice(WRAP.as_bytes());
            out.extend_from_slice(b"\":");
        }
        out.extend_from_slice(&told);
        if wraps {
            out.push(b'}');
        }
    }
    out.extend_from_slice(if envelope.is_ok() { b",\"isError\":false" } else { b",\"isError\":true" });
    out.extend_from_slice(b",\"_meta\":{");
    write_string(META, &mut out);
    out.push(b':');
    write_meta(&envelope.meta, &mut out);
    out.extend_from_slice(b"}}}");
    out
}

fn write_meta(meta: &Meta, out: &mut Vec<u8>) {
    out.push(b'{');
    for (name, value) in &meta.more {
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"executionId\":");
    write_string(&meta.execution_id, out);
    if let Some(version) = &meta.tool_version {
        out.extend_from_slice(b",\"toolVersion\":");
        write_string(version, out);
    }
    out.extend_from_slice(b",\"registryVersion\":");
    write_string(&meta.registry_version, out);
    out.extend_from_slice(format!(",\"duration\":{}}}", meta.duration).as_bytes());
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
            |headers: &HeaderMap, body: &Value| read(headers, body.to_string().as_bytes()).is_some();
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
}
