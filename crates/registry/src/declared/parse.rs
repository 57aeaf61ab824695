//! Text of a declared file as JSON, whatever its format. The text is hostile: its size, depth and what its
//! aliases grow to are bounded, a repeated key is an error, and so is a number that JSON does not have.

use std::cell::Cell;
use std::fmt;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};

use super::{MAX_BYTES, shown};
use crate::diagnostic::position;
use crate::json;
use toolwright_contract::suggest::list;

/// What a YAML file may grow to when its aliases are expanded: text, and values.
const MAX_GROWN_BYTES: usize = 4 * MAX_BYTES;
const MAX_VALUES: usize = 500_000;
const MAX_REPLAYED: usize = 200_000;

/// How the TOML library hands over a date.
const TOML_DATE: &str = "$__toml_private_datetime";

const EXTENSIONS: &[&str] = &["json", "yaml", "yml", "toml"];

/// Why a text is of no use, and the way out.
pub(super) type Refusal = (String, String);

/// The content of a file whose format its extension tells.
pub(super) fn parse(path: &Path, text: &str) -> Result<Value, Refusal> {
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len() as u64));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" => from_json(text),
        "yaml" | "yml" => from_yaml(text),
        "toml" => from_toml(text),
        _ => Err((
            format!("`{}` is no extension of a file with tools", shown(extension)),
            format!("use one of {}", list(EXTENSIONS)),
        )),
    }
}

pub(super) fn too_large(length: u64) -> Refusal {
    (
        format!("it has {length} bytes"),
        format!("a file with tools may have at most {MAX_BYTES} bytes; make several of it"),
    )
}

fn from_json(text: &str) -> Result<Value, Refusal> {
    let parsed = json::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span.start);
        (format!("not JSON: {} at line {line}, column {column}", error.message), "mend the syntax".to_owned())
    })?;
    match json::duplicate_keys(text).into_iter().next() {
        Some((span, key)) if parsed.has_duplicate_keys => {
            let (line, column) = position(text, span.start);
            let message = format!("the key `{}` is repeated at line {line}, column {column}", shown(&key));
            Err((message, "keep one of the two".to_owned()))
        }
        _ => Ok(parsed.value),
    }
}

fn from_yaml(text: &str) -> Result<Value, Refusal> {
    let limits = Limits { values: Cell::new(MAX_VALUES), bytes: Cell::new(MAX_GROWN_BYTES) };
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        budget: serde_saphyr::budget! {
            max_nodes: MAX_VALUES,
            max_recorded_anchor_bytes: MAX_GROWN_BYTES,
            max_merge_keys: 1000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        // As YAML 1.2 has it: `no` and `on` are words.
        strict_booleans: true,
        with_snippet: false,
    };
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Bounded { limits: &limits, date: None }.deserialize(deserializer)
    });
    read.map_err(|error| {
        (format!("not usable YAML: {}", shown(&error.to_string())), "mend the file".to_owned())
    })
}

fn from_toml(text: &str) -> Result<Value, Refusal> {
    let limits = Limits { values: Cell::new(usize::MAX), bytes: Cell::new(usize::MAX) };
    let bounded = Bounded { limits: &limits, date: Some(TOML_DATE) };
    let read = toml::Deserializer::parse(text).and_then(|deserializer| bounded.deserialize(deserializer));
    read.map_err(|error| {
        let at = error.span().map_or_else(String::new, |span| {
            let (line, column) = position(text, span.start);
            format!(" at line {line}, column {column}")
        });
        (format!("not usable TOML: {}{at}", shown(error.message())), "mend the file".to_owned())
    })
}

/// What is left. An alias repeats what it names without repeating its bytes in the file.
struct Limits {
    values: Cell<usize>,
    bytes: Cell<usize>,
}

impl Limits {
    fn take<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.values.get().checked_sub(1).zip(self.bytes.get().checked_sub(bytes));
        let (values, bytes) =
            left.ok_or_else(|| E::custom("it grows too large when its aliases are expanded"))?;
        self.values.set(values);
        self.bytes.set(bytes);
        Ok(())
    }
}

/// Reads any value that JSON can hold.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    limits: &'a Limits,
    /// The key of the only member of a table that stands for a date.
    date: Option<&'static str>,
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can hold")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.limits.take(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.limits.take(0).map(|()| Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.limits.take(0).map(|()| Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.limits.take(0)?;
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom(format!("JSON has no number `{value}`")))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.limits.take(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.limits.take(0).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.limits.take(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.limits.take(0)?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.limits.take(key.len())?;
            let value = members.next_value_seed(self)?;
            // JSON has no dates; as text they keep their meaning.
            if self.date == Some(key.as_str()) {
                return Ok(value);
            }
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is repeated"));
            }
        }
        Ok(Value::Object(map))
    }
}
