//! JSON bodies. A request body is parsed once, straight into its type; only a body that fails is examined for the
//! cause.

use std::collections::HashMap;

use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use toolwright_contract::arguments::check_integers;
use toolwright_contract::object::ObjectOnly;
use toolwright_contract::suggest::did_you_mean;

use crate::body::{self, Body};
use crate::problem::{Kind, Problem};

pub(crate) const MEDIA_TYPE: &str = "application/json";

/// Parses a body. An empty one means `{}`. `fields` are the names that a suggestion may offer.
pub(crate) fn parse<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: &[u8],
    fields: &[&str],
) -> Result<T, Problem> {
    if !body.is_empty() && !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(Problem::new(Kind::NOT_JSON, "Send the body with `content-type: application/json`."));
    }
    let text = if body.is_empty() { b"{}" } else { body };
    let ObjectOnly(value) = serde_json::from_slice(text).map_err(|error| explain(text, &error, fields))?;
    check_integers(text).map_err(|message| Problem::bad_json(format!("Invalid body: {message}."), 0, 0))?;
    Ok(value)
}

fn is_json(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    value[..end].trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
}

/// Names the unknown field, with a suggestion, or gives the parser's message.
fn explain(text: &[u8], error: &serde_json::Error, fields: &[&str]) -> Problem {
    let members = serde_json::from_slice::<HashMap<String, IgnoredAny>>(text).unwrap_or_default();
    let unknown = members.keys().filter(|name| !fields.contains(&name.as_str())).min();
    let detail = match unknown {
        Some(name) => format!("There is no field `{name}`: {}", did_you_mean(name, fields)),
        None => format!("Invalid body: {error}."),
    };
    Problem::bad_json(detail, error.line(), error.column())
}

pub(crate) fn response(value: &impl Serialize) -> Response<Body> {
    body::response(MEDIA_TYPE, to_text(value))
}

pub(crate) fn to_text(value: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(1024);
    // Serialization to memory fails only for maps whose keys are not text; there are none.
    let _ = serde_json::to_writer(&mut text, value);
    text
}
