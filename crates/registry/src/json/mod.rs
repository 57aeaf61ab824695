//! JSON files: parsed with repeated keys detected, positions of pointers in the text, and canonical JSON.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use toolwright_schema::pointer::Part;

pub use toolwright_contract::json::write_canonical;

/// A parsed document.
#[derive(Debug)]
pub struct Parsed {
    pub value: Value,
    /// The keys that repeat an earlier key of the same object, which is legal JSON but never intended. `value` has the
    /// last one.
    pub duplicate_keys: Vec<(Range<usize>, String)>,
}

/// Why a text is not JSON, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub message: String,
    pub span: Range<usize>,
}

/// Parses a whole document. Nesting deeper than 128 levels is refused.
pub fn parse(text: &str) -> Result<Parsed, SyntaxError> {
    let reader = ValueReader { allows_duplicate_keys: true, ..ValueReader::default() };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = reader
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| syntax_error(text, &error))?;
    let duplicate_keys = if reader.has_duplicate_keys.get() { duplicate_keys(text) } else { Vec::new() };
    Ok(Parsed { value, duplicate_keys })
}

fn syntax_error(text: &str, error: &serde_json::Error) -> SyntaxError {
    let line_start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let start = text.floor_char_boundary(line_start + error.column().saturating_sub(1));
    let length = text[start..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
    // The message of the library ends with the position, which diagnostics have in a field of their own.
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    SyntaxError { message, span: start..start + length }
}

/// The span in `text` of the value, or of its key, that `pointer` names. `None` if there is no such value.
pub fn locate(text: &str, pointer: &str, part: Part) -> Option<Range<usize>> {
    let mut found = Member { key: None, value: next_value(text, 0)? };
    for raw in pointer.split('/').skip(1) {
        let segment = raw.replace("~1", "/").replace("~0", "~");
        let members = members(text, &found.value);
        let is_array = members.first()?.key.is_none();
        let mut members = members.into_iter();
        found = match is_array {
            true => members.nth(segment.parse().ok()?)?,
            // Of repeated keys the last one counts, as in the parser.
            false => members.rfind(|member| member.name(text).as_ref() == Some(&segment))?,
        };
    }
    Some(found.key.filter(|_| part == Part::Key).unwrap_or(found.value))
}

/// The spans of all keys that repeat an earlier key of the same object, with the key's name.
pub fn duplicate_keys(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    if let Some(value) = next_value(text, 0) {
        collect_duplicates(text, &value, &mut found);
    }
    found
}

fn collect_duplicates(text: &str, value: &Range<usize>, found: &mut Vec<(Range<usize>, String)>) {
    let mut names = HashSet::new();
    for member in members(text, value) {
        if let (Some(name), Some(key)) = (member.name(text), member.key)
            && !names.insert(name.clone())
        {
            found.push((key, name));
        }
        collect_duplicates(text, &member.value, found);
    }
}

/// The spans of a member of an object, or of an element of an array, which has no key.
struct Member {
    key: Option<Range<usize>>,
    value: Range<usize>,
}

impl Member {
    fn name(&self, text: &str) -> Option<String> {
        serde_json::from_str(&text[self.key.clone()?]).ok()
    }
}

/// The members of the object or array at `value`; none of another value.
fn members(text: &str, value: &Range<usize>) -> Vec<Member> {
    let mut members = Vec::new();
    let is_object = text[value.start..].starts_with('{');
    if !is_object && !text[value.start..].starts_with('[') {
        return members;
    }
    let mut at = value.start + 1;
    while let Some(first) = next_value(text, at) {
        let member = match is_object {
            true => Member { value: next_value(text, first.end).unwrap_or_default(), key: Some(first) },
            false => Member { key: None, value: first },
        };
        at = member.value.end;
        members.push(member);
    }
    members
}

/// The span of the next value; `None` if a bracket closes before it.
fn next_value(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].trim_start_matches([' ', '\t', '\n', '\r', ',', ':']);
    let start = text.len() - rest.len();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(start..start + values.byte_offset())
}

/// Deserializes any value that JSON can hold, of any format and within limits.
pub(crate) struct ValueReader {
    /// How many values and bytes of text may still be read.
    pub values: Cell<usize>,
    pub bytes: Cell<usize>,
    pub allows_duplicate_keys: bool,
    pub has_duplicate_keys: Cell<bool>,
    /// The only key of an object that represents a date. JSON has no dates, so they become strings.
    pub date_key: Option<&'static str>,
}

impl Default for ValueReader {
    fn default() -> Self {
        Self {
            values: Cell::new(usize::MAX),
            bytes: Cell::new(usize::MAX),
            allows_duplicate_keys: false,
            has_duplicate_keys: Cell::new(false),
            date_key: None,
        }
    }
}

impl ValueReader {
    fn charge_bytes<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.values.get().checked_sub(1).zip(self.bytes.get().checked_sub(bytes));
        let (values, bytes) =
            left.ok_or_else(|| E::custom("the file grows too large when its aliases are expanded"))?;
        self.values.set(values);
        self.bytes.set(bytes);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &ValueReader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &ValueReader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can hold")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.charge_bytes(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.charge_bytes(0).map(|()| Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.charge_bytes(0).map(|()| Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.charge_bytes(0)?;
        let number = Number::from_f64(value).map(Value::Number);
        number.ok_or_else(|| E::custom(format!("JSON has no number `{value}`")))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.charge_bytes(value.len()).map(|()| Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.charge_bytes(0).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.charge_bytes(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.charge_bytes(0)?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.charge_bytes(key.len())?;
            let value = members.next_value_seed(self)?;
            if self.date_key == Some(key.as_str()) {
                return Ok(value);
            }
            if map.insert(key, value).is_some() {
                self.has_duplicate_keys.set(true);
                if !self.allows_duplicate_keys {
                    return Err(A::Error::custom("a key is repeated"));
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod json_tests;
