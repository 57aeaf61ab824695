//! Reads a response up to the size limit and converts it to `{status, ok, url, headers, body, json}`.

use crate::{CapabilityError, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use serde_json::{Map, Value, json};

/// Reads at most `max_bytes` of the body, whatever `content-length` says.
pub(crate) async fn read(mut response: Response, max_bytes: usize) -> Result<Value> {
    let too_large = || {
        CapabilityError::not_allowed(format!("the response is larger than the limit of {max_bytes} bytes"))
    };
    let max = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if response.content_length().is_some_and(|length| length > max) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() > max_bytes - body.len() => return Err(too_large()),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(to_json(&response, &body)),
            Err(_) => {
                return Err(CapabilityError::timeout(
                    "the connection broke before the response was complete",
                ));
            }
        }
    }
}

fn to_json(response: &Response, body: &[u8]) -> Value {
    let content_type = media_type(response.headers());
    let encoded =
        first_value(response.headers(), CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
    let text = if encoded || !is_text(&content_type) {
        STANDARD.encode(body)
    } else {
        String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).into_owned()
    };
    let json: Value = if !encoded && is_json(&content_type) {
        serde_json::from_str(&text).unwrap_or_default()
    } else {
        Value::Null
    };
    json!({
        "status": response.status().as_u16(),
        "ok": response.status().is_success(),
        "url": response.url().as_str(),
        "headers": headers(response.headers()),
        "body": text,
        "json": json,
    })
}

/// Values of the same name are joined, like `Headers.get` does.
fn headers(headers: &HeaderMap) -> Value {
    let mut result = Map::new();
    for name in headers.keys() {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        result.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    Value::Object(result)
}

fn first_value(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase())
}

/// Without parameters, in lower case; empty if there is none.
fn media_type(headers: &HeaderMap) -> String {
    let full = first_value(headers, CONTENT_TYPE).unwrap_or_default();
    full.split(';').next().unwrap_or_default().trim().to_owned()
}

fn is_json(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "text/json") || media_type.ends_with("+json")
}

/// The types below `application/` that are text.
const TEXT_SUBTYPES: &str = "json xml javascript ecmascript x-javascript x-www-form-urlencoded x-ndjson ndjson jsonl \
    json-seq yaml x-yaml toml graphql sql x-sh csv";

/// Media types whose body is returned as text; others are returned in base64. It depends on the type alone, so that a
/// handler knows which one it gets.
fn is_text(media_type: &str) -> bool {
    let Some((kind, name)) = media_type.split_once('/') else {
        return true;
    };
    let structured = ["+json", "+xml", "+yaml", "+toml"].iter().any(|suffix| name.ends_with(suffix));
    let textual = TEXT_SUBTYPES.split(' ').any(|textual| textual == name);
    matches!(kind, "text" | "message") || structured || (kind == "application" && textual)
}
