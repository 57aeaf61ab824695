//! Defaults are promises too: each must fit the schema that gives it.

use serde_json::Value;

use super::misfit::misfits;
use super::subschemas::visit;
use super::validate::Validator;

/// The schemas whose own `default` they refuse: their pointers, and why. The schema has passed the linter.
pub fn refused_defaults(schema: &Value) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    visit(schema, &mut String::new(), &mut |pointer, subschema| {
        let Some(default) = subschema.get("default") else { return };
        if is_plainly_fine(subschema, default) {
            return;
        }
        let alone = stand_alone(schema, subschema);
        if let Ok(validator) = Validator::compile(&alone)
            && let Some(misfit) = misfits(&validator, &alone, default).into_iter().next()
        {
            refused.push((pointer.to_owned(), misfit.message));
        }
    });
    refused
}

/// The common case without compiling anything: a scalar of the right type, perhaps one of an enum.
fn is_plainly_fine(schema: &Value, default: &Value) -> bool {
    let Value::Object(keywords) = schema else { return true };
    keywords.iter().all(|(keyword, wanted)| match keyword.as_str() {
        "default" | "description" | "title" | "examples" | "deprecated" | "$comment" => true,
        "type" => match wanted.as_str() {
            Some("string") => default.is_string(),
            Some("boolean") => default.is_boolean(),
            Some("integer") => default.is_i64() || default.is_u64(),
            Some("number") => default.is_number(),
            _ => false,
        },
        "enum" => wanted.as_array().is_some_and(|words| words.contains(default)),
        "minimum" => default.as_f64() >= wanted.as_f64(),
        "maximum" => default.as_f64() <= wanted.as_f64(),
        _ => false,
    })
}

/// `subschema` with the definitions of its root, so that its references still lead somewhere.
fn stand_alone(root: &Value, subschema: &Value) -> Value {
    let mut alone = subschema.clone();
    if let (Value::Object(members), Some(definitions)) = (&mut alone, root.get("$defs")) {
        members.entry("$defs").or_insert_with(|| definitions.clone());
    }
    alone
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
mod tests;
