//! Parses a declared file into JSON, whatever its format. The text is untrusted: its size, its depth and the expansion
//! of its aliases are bounded. A repeated key is an error, and so is a number that JSON does not have.

use std::cell::Cell;
use std::path::Path;

use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use toolwright_contract::suggest::list;

use super::MAX_BYTES;
use crate::diagnostic::position;
use crate::excerpt::excerpt;
use crate::json::{self, ValueReader};

/// Limits of a YAML file after its aliases are expanded: bytes of text, values, and parser events.
const MAX_EXPANDED_BYTES: usize = 4 * MAX_BYTES;
const MAX_VALUES: usize = 500_000;
const MAX_ALIAS_EVENTS: usize = 200_000;

/// The key under which the TOML library passes a date.
const TOML_DATE_KEY: &str = "$__toml_private_datetime";

const EXTENSIONS: &[&str] = &["json", "yaml", "yml", "toml"];

/// Why a file cannot be used, and how to fix it.
pub(super) type ParseError = (String, String);

/// The content of a file. Its extension decides the format.
pub(super) fn parse(path: &Path, text: &str) -> Result<Value, ParseError> {
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

pub(super) fn too_large(length: u64) -> ParseError {
    (
        format!("the file has {length} bytes, at most {MAX_BYTES} are allowed"),
        "split it into several files".to_owned(),
    )
}

fn from_json(text: &str) -> Result<Value, ParseError> {
    let parsed = json::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span.start);
        (format!("not JSON: {} at line {line}, column {column}", error.message), "fix the syntax".to_owned())
    })?;
    let Some((span, key)) = parsed.duplicate_keys.first() else { return Ok(parsed.value) };
    let (line, column) = position(text, span.start);
    let message = format!("the key `{}` is repeated at line {line}, column {column}", excerpt(key));
    Err((message, "remove one of the two".to_owned()))
}

fn from_yaml(text: &str) -> Result<Value, ParseError> {
    // An alias repeats a value without repeating its bytes in the file.
    let reader = ValueReader {
        values: Cell::new(MAX_VALUES),
        bytes: Cell::new(MAX_EXPANDED_BYTES),
        ..ValueReader::default()
    };
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
        reader.deserialize(deserializer)
    });
    read.map_err(|error| {
        (format!("not usable YAML: {}", excerpt(&error.to_string())), "fix the file".to_owned())
    })
}

fn from_toml(text: &str) -> Result<Value, ParseError> {
    let reader = ValueReader { date_key: Some(TOML_DATE_KEY), ..ValueReader::default() };
    let read = toml::Deserializer::parse(text).and_then(|deserializer| reader.deserialize(deserializer));
    read.map_err(|error| {
        let at = error.span().map_or_else(String::new, |span| {
            let (line, column) = position(text, span.start);
            format!(" at line {line}, column {column}")
        });
        (format!("not usable TOML: {}{at}", excerpt(error.message())), "fix the file".to_owned())
    })
}
