//! JSON in and out. A body is parsed once, straight into its form; what is wrong with it is looked at only then.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::HashMap;
use toolwright_contract::suggest::did_you_mean;

use crate::body::Body;
use crate::problem::{Kind, Problem};

/// The form of a request's body.
pub(crate) trait Form: DeserializeOwned {
    const FIELDS: &'static [&'static str];
}

/// Parses a body. One that is empty stands for `{}`.
pub(crate) fn parse<T: Form>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    if body.is_empty() {
        return of_text(b"{}");
    }
    if !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(Problem::new(Kind::NotJson, "Send it with `content-type: application/json`."));
    }
    of_text(body)
}

fn of_text<T: Form>(text: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(text).map_err(|error| explained::<T>(text, &error))
}

fn is_json(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    value[..end].trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// What is wrong, where, and what was perhaps meant.
fn explained<T: Form>(text: &[u8], error: &serde_json::Error) -> Problem {
    let members = serde_json::from_slice::<HashMap<String, IgnoredAny>>(text).unwrap_or_default();
    let unknown = members.keys().filter(|name| !T::FIELDS.contains(&name.as_str())).min();
    let detail = match unknown {
        Some(name) => format!("There is no field `{name}`: {}", did_you_mean(name, T::FIELDS)),
        None => format!("{error}."),
    };
    Problem::bad_json(detail, error.line(), error.column())
}

/// A response with a JSON body.
pub(crate) fn answer(value: &impl Serialize) -> Response<Body> {
    let mut text = Vec::with_capacity(512);
    // Maps have text keys and nothing here refuses to be written.
    let _ = serde_json::to_writer(&mut text, value);
    answer_of(text)
}

/// A response with a body that is JSON already.
pub(crate) fn answer_of(text: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn created(value: &impl Serialize) -> Response<Body> {
    let mut response = answer(value);
    *response.status_mut() = StatusCode::CREATED;
    response
}
