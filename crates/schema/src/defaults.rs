//! Checks that each `default` is valid against its own schema.

use serde_json::Value;

use crate::subschemas::visit_subschemas;
use crate::validate::Validator;
use crate::value_problem::value_problems;

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
#[path = "defaults_tests.rs"]
mod tests;
