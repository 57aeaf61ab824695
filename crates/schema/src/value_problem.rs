//! Why a value does not fit a schema, as diagnostics for a person: with a pointer into the value, and help.

use serde_json::Value;
use toolwright_contract::suggest::nearest;

use crate::pointer::{Part, child_pointer};
use crate::subschemas::visit_subschemas;
use crate::validate::{ValidationError, Validator};

/// Further problems are not reported.
const MAX_PROBLEMS: usize = 20;

/// One reason why a value does not fit its schema.
#[derive(Debug, PartialEq, Eq)]
pub struct ValueProblem {
    pub pointer: String,
    pub part: Part,
    pub message: String,
    pub help: Option<String>,
}

/// All problems of `value` once defaults are filled in. `schema` is the one that `validator` was compiled from.
pub fn value_problems(validator: &Validator, schema: &Value, value: &Value) -> Vec<ValueProblem> {
    let mut value = value.clone();
    let errors = validator.validate(&mut value).err().unwrap_or_default();
    errors.into_iter().take(MAX_PROBLEMS).map(|error| value_problem(error, schema, &value)).collect()
}

fn value_problem(error: ValidationError, schema: &Value, value: &Value) -> ValueProblem {
    if let Some(name) = error.params.get("additionalProperty").and_then(Value::as_str) {
        let near = nearest(name, declared_properties(&error, schema));
        return ValueProblem {
            pointer: child_pointer(&error.instance_path, name),
            part: Part::Key,
            message: format!("unknown parameter `{name}`"),
            help: near.map(|near| format!("did you mean `{near}`?")),
        };
    }
    let mut message = match error.instance_path.as_str() {
        "" => format!("the value {}", error.message),
        path => format!("`{path}` {}", error.message),
    };
    if let Some(allowed) = error.params.get("allowedValues") {
        message.push_str(&format!(": {allowed}"));
    }
    let found = value.pointer(&error.instance_path).filter(|found| !found.is_array() && !found.is_object());
    if let Some(found) = found {
        message.push_str(&format!(", got {found}"));
    }
    ValueProblem { pointer: error.instance_path, part: Part::Value, message, help: None }
}

/// The properties that the schema of the error declares.
fn declared_properties<'s>(error: &ValidationError, schema: &'s Value) -> impl Iterator<Item = &'s str> {
    let pointer = error.schema_path.strip_prefix('#').unwrap_or_default();
    let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties =
        schema.pointer(parent).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str())
}

/// The schemas that reject their own `default`: their pointers, and why. The schema has passed the linter.
pub fn invalid_defaults(schema: &Value) -> Vec<(String, String)> {
    let mut invalid = Vec::new();
    visit_subschemas(schema, &mut |pointer, subschema| {
        let Some(default) = subschema.get("default") else { return };
        let standalone = with_definitions(schema, subschema);
        if let Ok(validator) = Validator::compile(&standalone)
            && let Some(problem) = value_problems(&validator, &standalone, default).into_iter().next()
        {
            invalid.push((pointer.to_owned(), problem.message));
        }
    });
    invalid
}

/// `subschema` with the `$defs` of its root, so that its references still resolve.
fn with_definitions(root: &Value, subschema: &Value) -> Value {
    let mut standalone = subschema.clone();
    if let (Value::Object(members), Some(definitions)) = (&mut standalone, root.get("$defs")) {
        members.entry("$defs").or_insert_with(|| definitions.clone());
    }
    standalone
}

#[cfg(test)]
#[path = "value_problem_tests.rs"]
mod tests;
