//! Parses the arguments of `fetch(url, init?)`. It neither checks the allow list nor sends anything.

use crate::http::allow_list::canonical;
use crate::{CapabilityError, Result};
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

/// Headers that belong to the connection or could contradict the request: a length, a host, an encoding that is not
/// decoded, another method than the one that was checked.
const REFUSED_HEADERS: &str = "accept-encoding connection content-length expect host http2-settings keep-alive te \
    trailer transfer-encoding upgrade x-http-method x-http-method-override x-method-override";

const STANDARD_METHODS: &[&str] =
    &["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "TRACK"];

impl Request {
    /// Parses the URL and the optional `init`.
    pub(crate) fn parse(arguments: &[Value], max_bytes: usize) -> Result<Self> {
        let url = parse_url(arguments.first())?;
        let init = match arguments.get(1) {
            None | Some(Value::Null) => &Map::new(),
            Some(Value::Object(init)) => init,
            Some(_) => return Err(CapabilityError::invalid("init must be an object")),
        };
        check_members(init)?;
        let member = |name: &str| init.get(name).filter(|value| !value.is_null());
        let method = parse_method(member("method"))?;
        let mut headers = parse_headers(member("headers"))?;
        let body = parse_body(member("body"), &method, &mut headers)?;
        let request = Self { method, url, headers, body, timeout: parse_timeout(member("timeoutMs"))? };
        if request.bytes() > max_bytes {
            return Err(CapabilityError::invalid(format!(
                "the request is larger than the limit of {max_bytes} bytes"
            )));
        }
        Ok(request)
    }

    fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        self.url.as_str().len() + headers + self.body.as_ref().map_or(0, Vec::len)
    }
}

fn parse_url(url: Option<&Value>) -> Result<Url> {
    let text =
        url.and_then(Value::as_str).ok_or_else(|| CapabilityError::invalid("the URL must be a string"))?;
    let url =
        Url::parse(text).map_err(|error| CapabilityError::invalid(format!("the URL is invalid: {error}")))?;
    canonical(url)
}

/// Rejects unknown options, because ignoring one (`redirect: "manual"`) would surprise its author.
fn check_members(init: &Map<String, Value>) -> Result<()> {
    // `signal` is accepted out of habit and has no effect: a cancelled call cancels its requests anyway.
    let known = ["method", "headers", "body", "timeoutMs", "signal"];
    match init.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(CapabilityError::invalid(format!(
            "init has no member \"{name}\"; it may have method, headers, body and timeoutMs"
        ))),
    }
}

fn parse_method(method: Option<&Value>) -> Result<Method> {
    let Some(method) = method else { return Ok(Method::GET) };
    let text = method.as_str().ok_or_else(|| CapabilityError::invalid("method must be a string"))?;
    let upper = text.to_ascii_uppercase();
    let name = if STANDARD_METHODS.contains(&upper.as_str()) { &upper } else { text };
    Method::from_bytes(name.as_bytes())
        .map_err(|_| CapabilityError::invalid("method is not a valid HTTP method"))
}

fn parse_headers(headers: Option<&Value>) -> Result<HeaderMap> {
    let Some(headers) = headers else { return Ok(HeaderMap::new()) };
    let invalid = || CapabilityError::invalid("headers must be an object of names and values");
    let members = headers.as_object().ok_or_else(invalid)?;
    let mut result = HeaderMap::new();
    for (name, value) in members {
        let (name, value) = parse_header(name, value)?;
        result.insert(name, value);
    }
    Ok(result)
}

/// Messages leave out the value, which may be an API key.
fn parse_header(name: &str, value: &Value) -> Result<(HeaderName, HeaderValue)> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| CapabilityError::invalid("headers contains an invalid header name"))?;
    let is_refused = REFUSED_HEADERS.split(' ').any(|refused| parsed == refused);
    if is_refused || parsed.as_str().starts_with("proxy-") {
        return Err(CapabilityError::invalid(format!("the header \"{parsed}\" must not be set")));
    }
    let text = match value {
        Value::String(text) => text.trim_matches([' ', '\t']).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return Err(CapabilityError::invalid(format!("the header \"{parsed}\" must be a string"))),
    };
    let value = HeaderValue::from_str(&text).map_err(|_| {
        CapabilityError::invalid(format!("the header \"{parsed}\" contains invalid characters"))
    })?;
    Ok((parsed, value))
}

fn parse_body(body: Option<&Value>, method: &Method, headers: &mut HeaderMap) -> Result<Option<Vec<u8>>> {
    let (bytes, content_type) = match body {
        None => return Ok(None),
        Some(Value::String(text)) => (text.clone().into_bytes(), "text/plain;charset=UTF-8"),
        Some(value @ (Value::Object(_) | Value::Array(_))) => {
            (value.to_string().into_bytes(), "application/json")
        }
        Some(_) => return Err(CapabilityError::invalid("body must be a string or an object")),
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        return Err(CapabilityError::invalid(format!("a {method} request must not have a body")));
    }
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
    Ok(Some(bytes))
}

fn parse_timeout(timeout: Option<&Value>) -> Result<Option<Duration>> {
    let Some(timeout) = timeout else { return Ok(None) };
    // JavaScript numbers are floats, so 5000 may arrive as 5000.0; the cast saturates.
    match timeout.as_f64().filter(|number| *number >= 1.0 && number.fract() == 0.0) {
        Some(number) => Ok(Some(Duration::from_millis(number as u64))),
        None => Err(CapabilityError::invalid("timeoutMs must be a whole number of at least 1")),
    }
}
