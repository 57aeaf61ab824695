//! Front matter: YAML between two lines of `---` at the beginning of a file.

use serde::Deserialize as _;
use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::raw::{FIELDS, Raw};

/// What front matter says, beside the fields of a record.
#[derive(Debug, Default)]
pub struct Front {
    pub raw: Raw,
    /// Whether the file is one record, whatever headings it has.
    pub whole: bool,
}

/// The front matter, if there is some, and the rest of the text with the number of its first line. Keys that are no
/// field of a record become metadata: other programs have theirs.
pub fn split(text: &str) -> Result<(Front, &str, usize), (usize, String)> {
    let Some(after) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return Ok((Front::default(), text, 1));
    };
    let mut length = 0;
    let end = after.split_inclusive('\n').position(|line| {
        let is_end = line.trim_end() == "---";
        length += if is_end { 0 } else { line.len() };
        is_end
    });
    let Some(lines) = end else {
        return Err((1, "the front matter does not end: a line of `---` is missing".to_owned()));
    };
    let (yaml, rest) = after.split_at(length);
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    // The line of `---` counts too, as in an editor.
    let front = read(&format!("\n{yaml}")).map_err(|message| {
        let message = message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        (line_in(&message).unwrap_or(2), format!("the front matter cannot be read: {message}"))
    })?;
    Ok((front, rest, lines + 3))
}

/// The line that a message of the parser begins with.
fn line_in(message: &str) -> Option<usize> {
    message.strip_prefix("line ")?.split(' ').next()?.parse().ok()
}

fn read(yaml: &str) -> Result<Front, String> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::Error, strict_booleans: true };
    let value = serde_saphyr::with_deserializer_from_str_with_options(yaml, options, |deserializer| {
        Value::deserialize(deserializer)
    });
    let fields = match value.map_err(|error| error.to_string())? {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => return Err("it must be `name: value` lines".to_owned()),
    };
    let mut known = Map::new();
    let mut others = Map::new();
    let mut whole = false;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("split", Value::Bool(split)) => whole = !split,
            ("split", _) => return Err("`split` is true or false".to_owned()),
            (field, value) if FIELDS.contains(&field) => {
                let value = if field == "tags" { tags(value) } else { as_text(value) };
                known.insert(name, value);
            }
            (_, value) => {
                others.insert(name, value);
            }
        }
    }
    let mut raw: Raw = serde_json::from_value(Value::Object(known)).map_err(|error| error.to_string())?;
    if !others.is_empty() {
        raw.metadata.get_or_insert_default().extend(others);
    }
    Ok(Front { raw, whole })
}

/// A title may be a year: what YAML takes for a number is a text where one is wanted.
fn as_text(value: Value) -> Value {
    match value {
        Value::Number(_) | Value::Bool(_) => Value::String(value.to_string()),
        other => other,
    }
}

/// A list, or one text with commas.
fn tags(value: Value) -> Value {
    match as_text(value) {
        Value::Array(tags) => tags.into_iter().map(as_text).collect(),
        Value::String(tags) => tags.split(',').filter(|tag| !tag.trim().is_empty()).collect(),
        other => other,
    }
}
