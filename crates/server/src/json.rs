//! JSON in and out. A body is parsed once, straight into its form; what is wrong with it is looked at only then.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use toolwright_registry::suggest::did_you_mean;

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

/// A value in which no object has a name twice: readers differ in which of the two they take.
pub(crate) fn unambiguous<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Unambiguous.deserialize(from)
}

struct Unambiguous;

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Self)?;
            match all.entry(name) {
                Entry::Vacant(place) => _ = place.insert(value),
                Entry::Occupied(place) => {
                    return Err(A::Error::custom(format_args!("`{}` is there twice", place.key())));
                }
            }
        }
        Ok(all.into())
    }
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
