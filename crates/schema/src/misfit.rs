//! What is wrong with a value, told to a person and pointing into the value.

use serde_json::Value;

use super::validate::{Error, Validator};
use crate::pointer::{Part, child_pointer};
use toolwright_contract::suggest::nearest;

/// More than this nobody mends at once.
const MOST: usize = 20;

/// One reason why a value does not fit, and where in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    pub pointer: String,
    pub part: Part,
    pub message: String,
    pub help: Option<String>,
}

/// All that is wrong with `value` once the defaults are filled in. `schema` is what `validator` was made of.
pub fn misfits(validator: &Validator, schema: &Value, value: &Value) -> Vec<Misfit> {
    match validator.validate(&mut value.clone()) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_iter().take(MOST).map(|error| misfit(error, schema)).collect(),
    }
}

fn misfit(error: Error, schema: &Value) -> Misfit {
    if let Some(name) = error.params.get("additionalProperty").and_then(Value::as_str) {
        let near = nearest(name, known_properties(&error, schema));
        return Misfit {
            pointer: child_pointer(&error.instance_path, name),
            part: Part::Key,
            message: format!("there is no parameter `{name}`"),
            help: near.map(|near| format!("did you mean `{near}`?")),
        };
    }
    let message = match error.params.get("allowedValues") {
        Some(allowed) => format!("{}: {allowed}", error.message),
        None => error.message,
    };
    Misfit { pointer: error.instance_path, part: Part::Value, message, help: None }
}

/// The properties that the schema at the error's place declares.
pub fn known_properties<'s>(error: &Error, schema: &'s Value) -> impl Iterator<Item = &'s str> {
    let pointer = error.schema_path.strip_prefix('#').unwrap_or_default();
    let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties =
        schema.pointer(parent).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str())
}
