//! `availability` and `requiresConfirmation`: CEL conditions, and the preview of a confirmation.

use serde_json::Value;
use toolwright_contract::suggest::did_you_mean;

use super::{FieldCheck, field_path};
use crate::condition::{self, NAMES};
use crate::preview;

pub(super) fn availability(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(members) = check.object(value, pointer, "an object with `condition`") else { return };
    check.unknown_fields(members, pointer, &["condition"]);
    match members.get("condition") {
        Some(condition) => cel(check, condition, &format!("{pointer}/condition")),
        None => check.missing(pointer, "condition", "add a CEL expression, or remove `availability`"),
    }
}

pub(super) fn confirmation(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    if value.is_boolean() {
        return;
    }
    let expected = "true, false or an object `{ \"when\": …, \"preview\": … }`";
    let Some(members) = check.object(value, pointer, expected) else { return };
    check.unknown_fields(members, pointer, &["when", "preview"]);
    match members.get("when") {
        Some(when) => cel(check, when, &format!("{pointer}/when")),
        None => check.missing(pointer, "when", "`\"when\": \"true\"` asks before every call"),
    }
    if let Some(template) = members.get("preview") {
        check_preview(check, template, &format!("{pointer}/preview"));
    }
}

/// A CEL expression must parse, and use only the orchestrator's variables and the tool's own parameters.
fn cel(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(source) = check.text(value, pointer) else { return };
    let path = field_path(pointer);
    let names = match condition::compile(source) {
        Ok(program) => condition::names(&program),
        Err(error) => {
            check
                .error("cel-syntax", pointer, format!("`{path}` is not a CEL expression: {error}"))
                .help("a condition looks like `mode == \"text\" && args.count > 1`");
            return;
        }
    };
    for (name, help) in condition::unknown_names(&names.variables, NAMES) {
        let message = format!("`{path}` uses `{name}`, which conditions do not have");
        check.error("cel-unknown-name", pointer, message).help(help);
    }
    let known: Vec<&str> = check.parameters().map(|(name, _)| name).collect();
    for (name, help) in condition::unknown_names(&names.arguments, &known) {
        let message = format!("`{path}` uses `args.{name}`, and `parameters` has no `{name}`");
        check.error("cel-unknown-parameter", pointer, message).help(help);
    }
}

fn check_preview(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(template) = check.text(value, pointer) else { return };
    let path = field_path(pointer);
    let names = match preview::names(template) {
        Ok(names) => names,
        Err(error) => {
            check
                .error("preview-syntax", pointer, format!("`{path}` is not a template: {error}"))
                .help("`{{name}}` inserts an argument");
            return;
        }
    };
    let known: Vec<&str> = check.parameters().map(|(name, _)| name).collect();
    for name in names.into_iter().filter(|name| !known.contains(name)) {
        let message = format!("`{path}` shows `{{{{{name}}}}}`, and `parameters` has no `{name}`");
        check.error("preview-unknown-name", pointer, message).help(did_you_mean(name, &known));
    }
}
