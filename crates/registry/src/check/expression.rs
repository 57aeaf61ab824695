//! The expressions and templates inside `schema.json`: CEL conditions and the preview of a confirmation.

use serde_json::Value;

use super::fields::{text, unknown_fields, wrong_type};
use super::schema_file::Schema;
use crate::condition::{self, NAMES};
use crate::preview;
use toolwright_contract::suggest::did_you_mean;

pub(super) fn availability(schema: &mut Schema<'_>, value: &Value) {
    let Some(members) = value.as_object() else {
        return wrong_type(schema, value, "/availability", "an object with `condition`");
    };
    unknown_fields(schema, members, "/availability", &["condition"]);
    match members.get("condition") {
        Some(condition) => cel(schema, condition, "/availability/condition"),
        None => {
            schema.error("field-missing", "/availability", "the required field `condition` is missing");
        }
    }
}

pub(super) fn confirmation(schema: &mut Schema<'_>, value: &Value) {
    let at = "/requiresConfirmation";
    let Value::Object(members) = value else {
        if !value.is_boolean() {
            wrong_type(schema, value, at, "true, false or an object `{ \"when\": …, \"preview\": … }`");
        }
        return;
    };
    unknown_fields(schema, members, at, &["when", "preview"]);
    match members.get("when") {
        Some(when) => cel(schema, when, "/requiresConfirmation/when"),
        None => {
            schema
                .error("field-missing", at, "the required field `when` is missing")
                .help("`\"when\": \"true\"` asks every time");
        }
    }
    if let Some(template) = members.get("preview") {
        check_preview(schema, template);
    }
}

/// A CEL expression must parse and speak only of what the orchestrator gives it, and of the tool's own parameters.
fn cel(schema: &mut Schema<'_>, value: &Value, pointer: &str) {
    let Some(source) = text(schema, value, pointer) else { return };
    let names = match condition::compile(source) {
        Ok(program) => condition::names(&program),
        Err(unclear) => {
            schema
                .error("cel-syntax", pointer, format!("not a CEL expression: {unclear}"))
                .help("a condition looks like `mode == \"text\" && args.count > 1`");
            return;
        }
    };
    for (name, help) in condition::unknown(&names.variables, NAMES) {
        schema.error("cel-unknown-name", pointer, format!("a condition knows no `{name}`")).help(help);
    }
    let known: Vec<&str> = schema.parameter_names().keys().map(String::as_str).collect();
    for (name, help) in condition::unknown(&names.arguments, &known) {
        let message = format!("there is no parameter `{name}` that a condition could ask for");
        schema.error("cel-unknown-parameter", pointer, message).help(help);
    }
}

fn check_preview(schema: &mut Schema<'_>, value: &Value) {
    let pointer = "/requiresConfirmation/preview";
    let Some(template) = text(schema, value, pointer) else { return };
    let names: Vec<String> = match preview::names(template) {
        Ok(names) => names.into_iter().map(str::to_owned).collect(),
        Err(error) => {
            schema
                .error("preview-syntax", pointer, error.to_string())
                .help("`{{name}}` stands for an argument");
            return;
        }
    };
    let known: Vec<String> = schema.parameter_names().keys().cloned().collect();
    for name in names.iter().filter(|name| !known.contains(name)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        schema
            .error("preview-unknown-name", pointer, format!("there is no parameter `{name}` to show"))
            .help(did_you_mean(name, &known));
    }
}
