//! Reads a submitted form: the arguments, and the values that could not be read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::schema::{Schema, Shape};
use super::{MAX_DEPTH, NEW_ITEM, ROOT};

/// The values of a form: submitted ones, or the initial ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormValues {
    pub args: Value,
    /// Values that could not be read, by the name of the control.
    pub rejected: BTreeMap<String, RejectedText>,
    /// The chosen alternatives, by the name of their control.
    chosen: BTreeMap<String, usize>,
}

/// A text that is not a value of its control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedText {
    pub text: String,
    pub message: String,
}

impl FormValues {
    /// Values to begin a form with.
    pub fn from_args(args: Value) -> Self {
        Self { args, ..Self::default() }
    }

    pub(super) fn rejected_at(&self, name: &str) -> Option<&RejectedText> {
        self.rejected.get(name)
    }

    pub(super) fn chosen_at(&self, name: &str) -> Option<usize> {
        self.chosen.get(name).copied()
    }
}

/// Reads the arguments from the fields of a form, as the schema says. An empty control of an optional value leaves it
/// out.
pub fn decode<'a>(schema: &Value, fields: impl Iterator<Item = (&'a str, &'a str)>) -> FormValues {
    let mut decoder = Decoder { fields: fields.collect(), decoded: FormValues::default() };
    let args = decoder.value(Schema::new(schema).resolved(), ROOT, true, 0);
    FormValues { args: args.unwrap_or_else(|| Value::Object(Map::new())), ..decoder.decoded }
}

struct Decoder<'a> {
    fields: BTreeMap<&'a str, &'a str>,
    decoded: FormValues,
}

impl Decoder<'_> {
    fn value(&mut self, schema: Schema<'_>, name: &str, is_required: bool, depth: usize) -> Option<Value> {
        let shape = if depth > MAX_DEPTH { Shape::Json } else { schema.shape() };
        match shape {
            Shape::Object => self.object(schema, name, is_required, depth),
            Shape::List => self.list(schema, name, is_required, depth),
            Shape::Alternatives => self.alternative(schema, name, is_required, depth),
            shape => self.leaf(shape, name, is_required),
        }
    }

    fn leaf(&mut self, shape: Shape, name: &str, is_required: bool) -> Option<Value> {
        let text = self.fields.get(name).copied()?;
        let read = match shape {
            Shape::String if text.is_empty() && !is_required => return None,
            // A browser sends line breaks as CR LF.
            Shape::String => Ok(Value::String(text.replace("\r\n", "\n"))),
            _ if text.trim().is_empty() => return None,
            Shape::Number => number(text).ok_or("must be a number"),
            Shape::Integer => number(text).ok_or("must be a whole number"),
            _ => return self.json(name, text),
        };
        match read {
            Ok(value) => Some(value),
            Err(message) => self.reject(name, text, message.to_owned()),
        }
    }

    fn json(&mut self, name: &str, text: &str) -> Option<Value> {
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => self.reject(name, text, format!("must be JSON: {error}")),
        }
    }

    fn reject(&mut self, name: &str, text: &str, message: String) -> Option<Value> {
        self.decoded.rejected.insert(name.to_owned(), RejectedText { text: text.to_owned(), message });
        None
    }

    fn object(&mut self, schema: Schema<'_>, name: &str, is_required: bool, depth: usize) -> Option<Value> {
        let mut members = Map::new();
        let mut is_touched = is_required;
        for (key, node) in schema.properties() {
            let schema_of_member = schema.with_node(node);
            let path = format!("{name}/{}", key.replace('~', "~0").replace('/', "~1"));
            let must = schema.is_required(key);
            if let Some(value) = self.value(schema_of_member, &path, must, depth + 1) {
                is_touched |= !is_blank(&value);
                members.insert(key.clone(), value);
            }
        }
        is_touched.then_some(Value::Object(members))
    }

    fn list(&mut self, schema: Schema<'_>, name: &str, is_required: bool, depth: usize) -> Option<Value> {
        let of_items = schema.items()?;
        let prefix = format!("{name}/");
        let indexes: BTreeSet<u32> = self
            .fields
            .range(prefix.as_str()..)
            .take_while(|(own, _)| own.starts_with(&prefix))
            .filter_map(|(own, _)| own[prefix.len()..].split(['/', '@']).next())
            .filter(|index| *index != NEW_ITEM)
            .filter_map(|index| index.parse().ok())
            .collect();
        let items: Vec<Value> = indexes
            .into_iter()
            .filter_map(|index| self.value(of_items, &format!("{prefix}{index}"), false, depth + 1))
            .collect();
        (is_required || !items.is_empty()).then_some(Value::Array(items))
    }

    fn alternative(
        &mut self,
        schema: Schema<'_>,
        name: &str,
        is_required: bool,
        depth: usize,
    ) -> Option<Value> {
        let choice = format!("{name}@");
        let all = schema.alternatives();
        let chosen = self.fields.get(choice.as_str()).and_then(|text| text.parse::<usize>().ok());
        let index = chosen.filter(|index| *index < all.len())?;
        self.decoded.chosen.insert(name.to_owned(), index);
        self.value(all[index], &format!("{choice}{index}"), is_required, depth + 1)
    }
}

/// A number as JSON has it, without rounding what an integer can hold.
fn number(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_number)
}

/// A value that a required control sends although nothing was entered.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_blank),
        _ => false,
    }
}
