//! JSON bodies. A request body is parsed once, straight into its type; only a body that fails is examined for the cause.

use std::collections::HashMap;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use toolwright_contract::suggest::did_you_mean;

use crate::body::Body;
use crate::problem::{Kind, Problem};

/// The type of a request's body.
pub(crate) trait JsonBody: DeserializeOwned {
    /// The names that a suggestion may offer.
    const FIELDS: &'static [&'static str];
}

/// Parses a body. An empty one means `{}`.
pub(crate) fn parse<T: JsonBody>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    if body.is_empty() {
        return parse_text(b"{}");
    }
    if !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(Problem::new(Kind::NotJson, "Send the body with `content-type: application/json`."));
    }
    parse_text(body)
}

fn parse_text<T: JsonBody>(text: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(text).map_err(|error| explain::<T>(text, &error))
}

fn is_json(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    value[..end].trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Names the unknown field, with a suggestion, or gives the parser's message.
fn explain<T: JsonBody>(text: &[u8], error: &serde_json::Error) -> Problem {
    let members = serde_json::from_slice::<HashMap<String, IgnoredAny>>(text).unwrap_or_default();
    let unknown = members.keys().filter(|name| !T::FIELDS.contains(&name.as_str())).min();
    let detail = match unknown {
        Some(name) => format!("There is no field `{name}`: {}", did_you_mean(name, T::FIELDS)),
        None => format!("{error}."),
    };
    Problem::bad_json(detail, error.line(), error.column())
}

pub(crate) fn response(value: &impl Serialize) -> Response<Body> {
    let mut text = Vec::with_capacity(512);
    // Serialization to memory fails only for maps whose keys are not text; there are none.
    let _ = serde_json::to_writer(&mut text, value);
    response_from_text(text)
}

/// A response whose body is JSON text already.
pub(crate) fn response_from_text(text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn created(value: &impl Serialize) -> Response<Body> {
    let mut response = response(value);
    *response.status_mut() = StatusCode::CREATED;
    response
}
