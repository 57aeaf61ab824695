//! `availability` and `requiresConfirmation`: CEL conditions, and the preview of a confirmation.

use serde_json::{Map, Value};
use toolwright_contract::PREVIEW_FUNCTIONS;
use toolwright_contract::suggest::did_you_mean;
use toolwright_schema::pointer::child_pointer;

use super::{FieldCheck, field_path};
use crate::condition::{self, NAMES};
use crate::condition_types::{type_errors, variables};
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
    check.unknown_fields(members, pointer, &["when", "preview", "read"]);
    match members.get("when") {
        Some(when) => cel(check, when, &format!("{pointer}/when")),
        None => check.missing(pointer, "when", "`\"when\": \"true\"` asks before every call"),
    }
    let read = members.get("read").and_then(|value| check_reads(check, value, &format!("{pointer}/read")));
    let read: Vec<&str> = read.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    match members.get("preview") {
        Some(template) => check_preview(check, template, &format!("{pointer}/preview"), &read),
        None if !read.is_empty() => check.missing(pointer, "preview", "show what `read` reads, or remove it"),
        None => {}
    }
}

/// `read`: read-only calls of capabilities, with the tool's own parameters.
fn check_reads<'v>(
    check: &mut FieldCheck<'_>,
    value: &'v Value,
    pointer: &str,
) -> Option<&'v Map<String, Value>> {
    let reads = check.object(value, pointer, "an object of names and `{ \"call\": …, \"with\": … }`")?;
    for (name, read) in reads {
        let pointer = child_pointer(pointer, name);
        let path = field_path(&pointer);
        if check.parameters().any(|(parameter, _)| parameter == name) {
            let message = format!("`{path}` has the name of a parameter");
            check.error("field-value", &pointer, message).at_key().help("use another name in `read`");
        }
        let Some(members) = check.object(read, &pointer, "an object with `call` and `with`") else {
            continue;
        };
        check.unknown_fields(members, &pointer, &["call", "with"]);
        match members.get("call") {
            Some(call) => check_function(check, call, &format!("{pointer}/call")),
            None => check.missing(&pointer, "call", "name a function, such as `calendar.getDraft`"),
        }
        let with = format!("{pointer}/with");
        let arguments = members.get("with").and_then(|value| check.object(value, &with, "an object"));
        for (name, template) in arguments.into_iter().flatten().filter(|(_, value)| value.is_string()) {
            check_preview(check, template, &child_pointer(&with, name), &[]);
        }
    }
    Some(reads)
}

fn check_function(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(name) = check.text(value, pointer) else { return };
    if !PREVIEW_FUNCTIONS.contains(&name) {
        let message = format!("`{}` is `{name}`, which a preview cannot call", field_path(pointer));
        check.error("field-value", pointer, message).help(did_you_mean(name, PREVIEW_FUNCTIONS));
    }
}

/// A CEL expression must parse, and use only the orchestrator's variables and the tool's own parameters.
fn cel(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(source) = check.text(value, pointer) else { return };
    let path = field_path(pointer);
    let program = match condition::compile(source) {
        Ok(program) => program,
        Err(error) => {
            check
                .error("cel-syntax", pointer, format!("`{path}` is not a CEL expression: {error}"))
                .help("a condition looks like `mode == \"text\" && args.count > 1`");
            return;
        }
    };
    let names = condition::names(&program);
    for (name, help) in condition::unknown_names(&names.variables, NAMES) {
        let message = format!("`{path}` uses `{name}`, which conditions do not have");
        check.error("cel-unknown-name", pointer, message).help(help);
    }
    let known: Vec<&str> = check.parameters().map(|(name, _)| name).collect();
    for (name, help) in condition::unknown_names(&names.arguments, &known) {
        let message = format!("`{path}` uses `args.{name}`, and `parameters` has no `{name}`");
        check.error("cel-unknown-parameter", pointer, message).help(help);
    }
    for problem in type_errors(&program, variables(check.members.get("parameters"))) {
        check
            .error("cel-type", pointer, format!("`{path}` can never hold: {problem}"))
            .help("compare values of one type, and use the members that the variables have");
    }
}

/// `read` are the names that the template may use in addition to the parameters.
fn check_preview(check: &mut FieldCheck<'_>, value: &Value, pointer: &str, read: &[&str]) {
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
    let known: Vec<&str> = check.parameters().map(|(name, _)| name).chain(read.iter().copied()).collect();
    for name in names.into_iter().filter(|name| !known.contains(name)) {
        let message = format!("`{path}` shows `{{{{{name}}}}}`, and `parameters` has no `{name}`");
        check.error("preview-unknown-name", pointer, message).help(did_you_mean(name, &known));
    }
}
