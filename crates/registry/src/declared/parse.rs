//! Parses a declared file into JSON, whatever its format. The text is untrusted: its size, its depth and the expansion
//! of its aliases are bounded. A repeated key is an error, and so is a number that JSON does not have.

use std::cell::Cell;
use std::fmt;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use toolwright_contract::suggest::list;

use super::MAX_BYTES;
use crate::diagnostic::position;
use crate::excerpt::excerpt;
use crate::json;

/// Limits of a YAML file after its aliases are expanded: bytes of text, values, and parser events.
const MAX_EXPANDED_BYTES: usize = 4 * MAX_BYTES;
const MAX_VALUES: usize = 500_000;
const MAX_ALIAS_EVENTS: usize = 200_000;

/// The key under which the TOML library passes a date.
const TOML_DATE_KEY: &str = "$__toml_private_datetime";

const EXTENSIONS: &[&str] = &["json", "yaml", "yml", "toml"];

/// Why a file cannot be used, and how to fix it.
pub(super) type Refusal = (String, String);

/// The content of a file. Its extension decides the format.
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
            format!("`{}` is not an extension of a file with tools", excerpt(extension)),
            format!("use one of {}", list(EXTENSIONS)),
        )),
    }
}

pub(super) fn too_large(length: u64) -> Refusal {
    (
        format!("the file has {length} bytes, at most {MAX_BYTES} are allowed"),
        "split it into several files".to_owned(),
    )
}

fn from_json(text: &str) -> Result<Value, Refusal> {
    let parsed = json::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span.start);
        (format!("not JSON: {} at line {line}, column {column}", error.message), "fix the syntax".to_owned())
    })?;
    match json::duplicate_keys(text).into_iter().next() {
        Some((span, key)) if parsed.has_duplicate_keys => {
            let (line, column) = position(text, span.start);
            let message = format!("the key `{}` is repeated at line {line}, column {column}", excerpt(&key));
            Err((message, "remove one of the two".to_owned()))
        }
        _ => Ok(parsed.value),
    }
}

fn from_yaml(text: &str) -> Result<Value, Refusal> {
    let limits = Limits { values: Cell::new(MAX_VALUES), bytes: Cell::new(MAX_EXPANDED_BYTES) };
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIAS_EVENTS },
        budget: serde_saphyr::budget! {
            max_nodes: MAX_VALUES,
            max_recorded_anchor_bytes: MAX_EXPANDED_BYTES,
            max_merge_keys: 1000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        // As in YAML 1.2: `no` and `on` are strings.
        strict_booleans: true,
        with_snippet: false,
    };
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        BoundedValue { limits: &limits, date_key: None }.deserialize(deserializer)
    });
    read.map_err(|error| {
        (format!("not usable YAML: {}", excerpt(&error.to_string())), "fix the file".to_owned())
    })
}

fn from_toml(text: &str) -> Result<Value, Refusal> {
    let limits = Limits { values: Cell::new(usize::MAX), bytes: Cell::new(usize::MAX) };
    let bounded = BoundedValue { limits: &limits, date_key: Some(TOML_DATE_KEY) };
    let read = toml::Deserializer::parse(text).and_then(|deserializer| bounded.deserialize(deserializer));
    read.map_err(|error| {
        let at = error.span().map_or_else(String::new, |span| {
            let (line, column) = position(text, span.start);
            format!(" at line {line}, column {column}")
        });
        (format!("not usable TOML: {}{at}", excerpt(error.message())), "fix the file".to_owned())
    })
}

/// How many values and bytes may still be read. An alias repeats a value without repeating its bytes in the file.
struct Limits {
    values: Cell<usize>,
    bytes: Cell<usize>,
}

impl Limits {
    fn spend<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.values.get().checked_sub(1).zip(self.bytes.get().checked_sub(bytes));
        let (values, bytes) =
            left.ok_or_else(|| E::custom("the file grows too large when its aliases are expanded"))?;
        self.values.set(values);
        self.bytes.set(bytes);
        Ok(())
    }
}

/// Deserializes any value that JSON can hold, within the limits.
#[derive(Clone, Copy)]
struct BoundedValue<'a> {
    limits: &'a Limits,
    /// The only key of a table that represents a date.
    date_key: Option<&'static str>,
}

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can hold")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.limits.spend(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.limits.spend(0).map(|()| Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.limits.spend(0).map(|()| Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.limits.spend(0)?;
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom(format!("JSON has no number `{value}`")))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.limits.spend(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.limits.spend(0).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.limits.spend(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.limits.spend(0)?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.limits.spend(key.len())?;
            let value = members.next_value_seed(self)?;
            // JSON has no dates, so they become strings.
            if self.date_key == Some(key.as_str()) {
                return Ok(value);
            }
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is repeated"));
            }
        }
        Ok(Value::Object(map))
    }
}
