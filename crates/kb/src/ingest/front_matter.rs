//! Front matter: YAML between two lines of `---` at the beginning of a file.

use serde::Deserialize as _;
use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::ParseError;
use super::record_input::{FIELD_NAMES, RecordInput};

/// The content of front matter.
#[derive(Debug, Default)]
pub struct FrontMatter {
    pub input: RecordInput,
    /// `split: false`: the file is one record, whatever headings it has.
    pub is_single_record: bool,
}

/// Splits a file into its front matter and the rest, with the line number of the rest. Keys that are not fields of a
/// record become metadata, because other programs use front matter too.
pub fn split(text: &str) -> Result<(FrontMatter, &str, usize), ParseError> {
    let Some(after) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return Ok((FrontMatter::default(), text, 1));
    };
    let mut length = 0;
    let end = after.split_inclusive('\n').position(|line| {
        let is_end = line.trim_end() == "---";
        length += if is_end { 0 } else { line.len() };
        is_end
    });
    let Some(lines) = end else {
        let message = "the front matter is not closed: add a line of `---`".to_owned();
        return Err(ParseError { line: Some(1), message });
    };
    let (yaml, rest) = after.split_at(length);
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    // The added line stands for the opening `---`, so that the parser's line numbers are those of the file.
    let front_matter = parse(&format!("\n{yaml}")).map_err(|message| {
        let message = message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let line = Some(line_number(&message).unwrap_or(2));
        ParseError { line, message: format!("the front matter is invalid: {message}") }
    })?;
    Ok((front_matter, rest, lines + 3))
}

/// The line number at the beginning of a parser message.
fn line_number(message: &str) -> Option<usize> {
    message.strip_prefix("line ")?.split(' ').next()?.parse().ok()
}

fn parse(yaml: &str) -> Result<FrontMatter, String> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::Error, strict_booleans: true };
    let value = serde_saphyr::with_deserializer_from_str_with_options(yaml, options, |deserializer| {
        Value::deserialize(deserializer)
    });
    let fields = match value.map_err(|error| error.to_string())? {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => return Err("it must consist of `name: value` lines".to_owned()),
    };
    let (mut known, mut metadata) = (Map::new(), Map::new());
    let mut is_single_record = false;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("split", Value::Bool(split)) => is_single_record = !split,
            ("split", _) => return Err("`split` must be true or false".to_owned()),
            ("tags", value) => _ = known.insert(name, tag_list(value)),
            (field, value) if FIELD_NAMES.split(' ').any(|name| name == field) => {
                _ = known.insert(name, scalar_to_text(value))
            }
            (_, value) => _ = metadata.insert(name, value),
        }
    }
    let mut input: RecordInput =
        serde_json::from_value(Value::Object(known)).map_err(|error| error.to_string())?;
    if !metadata.is_empty() {
        input.metadata.get_or_insert_default().extend(metadata);
    }
    Ok(FrontMatter { input, is_single_record })
}

/// Turns numbers and booleans into text: a title may be a year.
fn scalar_to_text(value: Value) -> Value {
    match value {
        Value::Number(_) | Value::Bool(_) => Value::String(value.to_string()),
        other => other,
    }
}

/// Accepts a list, or one text with commas.
fn tag_list(value: Value) -> Value {
    match scalar_to_text(value) {
        Value::Array(tags) => tags.into_iter().map(scalar_to_text).collect(),
        Value::String(tags) => tags.split(',').filter(|tag| !tag.trim().is_empty()).collect(),
        other => other,
    }
}
