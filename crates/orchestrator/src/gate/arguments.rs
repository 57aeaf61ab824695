//! Whether the arguments match the schema; absent ones get their defaults. The refusal has enough detail for a model to
//! correct the arguments.

use serde_json::{Number, Value, json};
use toolwright_contract::json::inexact_integer;
use toolwright_contract::suggest::nearest;
use toolwright_contract::{ErrorKind, Failure};
use toolwright_registry::toolset::Implementation;
use toolwright_schema::ValidationError;

use super::{GateInput, GateRefusal};

/// The most errors in one message.
const MAX_ERRORS: usize = 10;

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    let prepared = input.prepared;
    let checked = prepared.parameters.validate(input.args);
    checked.map_err(|errors| refuse(&errors, &prepared.tool.spec.json_schema))?;
    if matches!(prepared.tool.implementation, Implementation::Module(_))
        && let Some((place, number)) = inexact_integer(input.args)
    {
        return Err(refuse(&[inexact(place, number)], &prepared.tool.spec.json_schema).into());
    }
    Ok(())
}

/// JavaScript has only doubles: an integer that does not fit would be rounded.
fn inexact(instance_path: String, number: &Number) -> ValidationError {
    ValidationError {
        instance_path,
        schema_path: "#".to_owned(),
        keyword: "type",
        params: json!({ "type": "number" }),
        message: format!("is {number}, which JavaScript cannot hold exactly (beyond 2^53); use a string"),
    }
}

/// Validates clamped arguments.
pub(super) fn check_again(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    if input.clamped.is_empty() { Ok(()) } else { check(input) }
}

/// The refusal of a call whose arguments have these errors.
fn refuse(errors: &[ValidationError], schema: &Value) -> Failure {
    let messages: Vec<String> = errors.iter().take(MAX_ERRORS).map(|error| message(error, schema)).collect();
    let mut failure =
        Failure::new(ErrorKind::Validation, format!("Invalid parameters: {}", messages.join("; ")));
    failure.details = serde_json::to_value(errors).ok().map(Box::new);
    failure.suggest("Correct the arguments and call the tool again. Nothing was done.")
}

fn message(error: &ValidationError, schema: &Value) -> String {
    let place = if error.instance_path.is_empty() { "the arguments" } else { error.instance_path.as_str() };
    if let Some(name) = error.params.get("additionalProperty").and_then(Value::as_str) {
        let known = properties(error, schema);
        let near = nearest(name, known.iter().copied());
        return match near {
            Some(near) => format!("{place} must not have `{name}` (did you mean `{near}`?)"),
            None if known.is_empty() => format!("{place} must not have `{name}`"),
            None => format!("{place} must not have `{name}` (allowed: {})", known.join(", ")),
        };
    }
    match error.params.get("allowedValues") {
        Some(allowed) => format!("{place} {}: {allowed}", error.message),
        None => format!("{place} {}", error.message),
    }
}

/// The names of the properties that the schema at the error's place allows.
fn properties<'s>(error: &ValidationError, schema: &'s Value) -> Vec<&'s str> {
    let pointer = error.schema_path.strip_prefix('#').unwrap_or_default();
    let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties =
        schema.pointer(parent).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}
