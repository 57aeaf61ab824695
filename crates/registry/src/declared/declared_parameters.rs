//! `parameters` of a declared tool: any JSON Schema of any draft; the strict rules are for the tools directory.

use serde_json::Value;
use toolwright_schema::pointer::Part;
use toolwright_schema::{Validator, is_supported_pattern, lint};

use crate::excerpt::{excerpt, value_excerpt};
use crate::fields::FieldCheck;

/// Checks that the schema compiles and describes an object.
pub(crate) fn check_parameters(check: &mut FieldCheck<'_>, schema: &Value, pointer: &str) {
    let Some(keywords) = check.object(schema, pointer, "a JSON Schema") else { return };
    if keywords.get("type").is_none_or(|kind| kind != "object") {
        let kind = keywords.get("type").map_or_else(|| "nothing".to_owned(), value_excerpt);
        let message = format!("`parameters.type` must be `object`, got {kind}");
        check
            .error("parameters-not-object", pointer, message)
            .help("a tool without arguments has `{ \"type\": \"object\", \"properties\": {} }`");
        return;
    }
    let compiled = Validator::compile(schema).map_err(|error| error.to_string());
    match compiled.and_then(|validator| invalid_pattern(schema).map_or(Ok(validator), Err)) {
        Ok(validator) => check.validator = Some(validator),
        Err(reason) => {
            let message = format!("`parameters` is not a JSON Schema: {}", excerpt(&reason));
            check.error("schema-invalid", pointer, message).help("fix the schema at the place that is named");
        }
    }
}

/// A pattern that cannot be built: the validator would take it to match nothing, so that no call could be valid.
/// The linter is stricter than the regular expression engine, so what it rejects is tried.
fn invalid_pattern(schema: &Value) -> Option<String> {
    lint(schema).into_iter().find_map(|problem| {
        if !matches!(problem.code, "schema-bad-pattern" | "schema-pattern-too-costly") {
            return None;
        }
        let at = || schema.pointer(&problem.pointer).and_then(Value::as_str).map(str::to_owned);
        let key = || problem.pointer.rsplit('/').next().map(|key| key.replace("~1", "/").replace("~0", "~"));
        let pattern = if problem.part == Part::Key { key() } else { at() };
        let is_supported = pattern.is_some_and(|pattern| is_supported_pattern(&pattern));
        (!is_supported).then(|| format!("{} at `{}`", problem.message, problem.pointer))
    })
}
