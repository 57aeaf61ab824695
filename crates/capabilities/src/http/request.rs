//! One request as a handler asks for it: `fetch(url, init?)` read and checked, before anything is judged or sent.

use crate::Fault;
use crate::http::allow::canonical;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::time::Duration;
use url::Url;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) timeout: Option<Duration>,
}

/// Headers that belong to the connection, or that would say something else than the request itself: a length, a host, an
/// encoding that we do not decode, another method than the one that was admitted.
const REFUSED_HEADERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

const STANDARD_METHODS: &[&str] =
    &["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "TRACK"];

impl Request {
    /// Reads the handler's arguments: the URL, and the optional `init`.
    pub(crate) fn parse(arguments: &[Value], max_bytes: usize) -> Result<Self, Fault> {
        let url = parse_url(arguments.first())?;
        let nothing = Map::new();
        let init = match arguments.get(1) {
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(init)) => init,
            Some(_) => return Err(Fault::invalid("init is an object")),
        };
        check_members(init)?;
        let method = parse_method(init.get("method"))?;
        let mut headers = parse_headers(init.get("headers"))?;
        let body = parse_body(init.get("body"), &method, &mut headers)?;
        let request = Self { method, url, headers, body, timeout: parse_timeout(init.get("timeoutMs"))? };
        if request.bytes() > max_bytes {
            return Err(Fault::invalid(format!("the request is larger than {max_bytes} bytes")));
        }
        Ok(request)
    }

    fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        self.url.as_str().len() + headers + self.body.as_ref().map_or(0, Vec::len)
    }
}

fn parse_url(url: Option<&Value>) -> Result<Url, Fault> {
    let text = url.and_then(Value::as_str).ok_or_else(|| Fault::invalid("the URL is a string"))?;
    let url = Url::parse(text).map_err(|error| Fault::invalid(format!("the URL cannot be read: {error}")))?;
    canonical(url)
}

/// An option that is ignored in silence (`redirect: "manual"`) would do something else than its author thinks.
fn check_members(init: &Map<String, Value>) -> Result<(), Fault> {
    // `signal` is what people pass to any fetch; the call's own cancellation already does what it asks for.
    let known = ["method", "headers", "body", "timeoutMs", "signal"];
    match init.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Fault::invalid(format!(
            "init has no member \"{name}\"; it may have method, headers, body and timeoutMs"
        ))),
    }
}

fn parse_method(method: Option<&Value>) -> Result<Method, Fault> {
    let text = match method {
        None | Some(Value::Null) => return Ok(Method::GET),
        Some(Value::String(text)) => text,
        Some(_) => return Err(Fault::invalid("method is a string")),
    };
    let upper = text.to_ascii_uppercase();
    let name = if STANDARD_METHODS.contains(&upper.as_str()) { &upper } else { text };
    Method::from_bytes(name.as_bytes())
        .map_err(|_| Fault::invalid("method is not the name of an HTTP method"))
}

fn parse_headers(headers: Option<&Value>) -> Result<HeaderMap, Fault> {
    let mut result = HeaderMap::new();
    let members = match headers {
        None | Some(Value::Null) => return Ok(result),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(Fault::invalid("headers is an object of names and values")),
    };
    for (name, value) in members {
        let (name, value) = parse_header(name, value)?;
        result.insert(name, value);
    }
    Ok(result)
}

/// The value is never repeated in a message: it may be a key.
fn parse_header(name: &str, value: &Value) -> Result<(HeaderName, HeaderValue), Fault> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Fault::invalid("headers holds a name that is not a header name"))?;
    if REFUSED_HEADERS.contains(&parsed.as_str()) || parsed.as_str().starts_with("proxy-") {
        return Err(Fault::invalid(format!("the header \"{parsed}\" may not be set")));
    }
    let text = match value {
        Value::String(text) => text.trim_matches([' ', '\t']).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return Err(Fault::invalid(format!("the header \"{parsed}\" is not a string"))),
    };
    let value = HeaderValue::from_str(&text).map_err(|_| {
        Fault::invalid(format!("the header \"{parsed}\" holds characters that may not be sent"))
    })?;
    Ok((parsed, value))
}

fn parse_body(
    body: Option<&Value>,
    method: &Method,
    headers: &mut HeaderMap,
) -> Result<Option<Vec<u8>>, Fault> {
    let (bytes, content_type) = match body {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => (text.clone().into_bytes(), "text/plain;charset=UTF-8"),
        Some(value @ (Value::Object(_) | Value::Array(_))) => {
            (value.to_string().into_bytes(), "application/json")
        }
        Some(_) => return Err(Fault::invalid("body is a string or an object")),
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        return Err(Fault::invalid(format!("a {method} request has no body")));
    }
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
    Ok(Some(bytes))
}

fn parse_timeout(timeout: Option<&Value>) -> Result<Option<Duration>, Fault> {
    let milliseconds = match timeout {
        None | Some(Value::Null) => return Ok(None),
        // JavaScript has one kind of number, so that 5000 may arrive as 5000.0; the cast saturates.
        Some(value) => value.as_f64().filter(|number| *number >= 1.0 && number.fract() == 0.0),
    };
    match milliseconds {
        Some(number) => Ok(Some(Duration::from_millis(number as u64))),
        None => Err(Fault::invalid("timeoutMs is a whole number of at least 1")),
    }
}
