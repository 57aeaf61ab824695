//! `parameters` and `output`: JSON Schemas that must compile under the strict rules and keep their own promises.

use std::borrow::Cow;

use serde_json::Value;

use super::fields::wrong_type;
use super::hidden;
use super::names;
use super::schema_file::{FILE, Schema, report_duplicates};
use crate::diagnostic::{Finding, Place};
use crate::shared::{Bundled, bundle};
use toolwright_schema::pointer::child_pointer;
use toolwright_schema::{Validator, invalid_defaults, lint};

pub(super) fn check_parameters(schema: &mut Schema<'_>, value: &Value) {
    let at = "/parameters";
    if !value.is_object() {
        return wrong_type(schema, value, at, "a JSON Schema object");
    }
    match value.get("type") {
        Some(kind) if kind == "object" => {}
        Some(_) => {
            schema
                .error(
                    "parameters-not-object",
                    "/parameters/type",
                    "the arguments of a tool are always an object",
                )
                .help("write `\"type\": \"object\"`");
        }
        None => {
            schema
                .error("parameters-not-object", at, "`type` is missing")
                .at_key()
                .help("add `\"type\": \"object\"`");
        }
    }
    if value.get("additionalProperties") != Some(&Value::Bool(false)) {
        let has = value.get("additionalProperties").is_some();
        schema
            .error(
                "parameters-open",
                if has { "/parameters/additionalProperties" } else { at },
                "invented parameters would pass",
            )
            .at_key()
            .help("add `\"additionalProperties\": false`");
    }
    // What follows from a wrong root type alone would only bury that finding.
    let mended = (value.get("type") != Some(&Value::from("object"))).then(|| {
        let mut mended = value.clone();
        mended["type"] = Value::from("object");
        mended
    });
    if let Some(bundled) = check_json_schema(schema, mended.as_ref().unwrap_or(value), at) {
        match Validator::compile(&bundled) {
            Ok(validator) => schema.validator = Some(validator),
            Err(error) => drop(schema.error("schema-invalid", at, error.to_string())),
        }
        if let Cow::Owned(bundled) = bundled {
            schema.bundled_parameters = Some(bundled);
        }
    }
}

pub(super) fn check_output(schema: &mut Schema<'_>, value: &Value) {
    let at = "/output";
    if !value.is_object() {
        return wrong_type(schema, value, at, "a JSON Schema object");
    }
    if let Some(Cow::Owned(bundled)) = check_json_schema(schema, value, at) {
        schema.bundled_output = Some(bundled);
    }
}

/// The schema with shared definitions pulled in, if it is sound.
fn check_json_schema<'v>(schema: &mut Schema<'_>, value: &'v Value, at: &str) -> Option<Cow<'v, Value>> {
    let mut is_sound = true;
    let Bundled { schema: bundled, missing, keys } = bundle(value, schema.shared);
    for (pointer, message, help) in missing {
        is_sound = false;
        schema.error("schema-shared-ref", format!("{at}{pointer}"), message).help(help);
    }
    if !is_sound {
        return None;
    }
    for (_, name) in &keys {
        check_shared(schema, name);
    }
    for problem in lint(&bundled) {
        is_sound = false;
        let (file, pointer) = whose(&keys, &problem.pointer, at);
        let place = Place::Json { pointer, part: problem.part };
        let mut finding = Finding::error(problem.code, file, place, problem.message);
        finding.help = problem.help;
        schema.findings.push(finding);
    }
    if !is_sound {
        return None;
    }
    for (pointer, message) in invalid_defaults(&bundled) {
        is_sound = false;
        let (file, pointer) = whose(&keys, &child_pointer(&pointer, "default"), at);
        schema
            .findings
            .push(Finding::json(
                "default-refused",
                file,
                pointer,
                format!("the default does not fit its own schema: {message}"),
            ))
            .help("change the default or the schema");
    }
    if at == "/parameters" {
        for (pointer, name) in names::refused(&bundled) {
            let (file, pointer) = whose(&keys, &pointer, at);
            let message = format!("some model providers refuse `{name}` as the name of a parameter");
            let finding = Finding::json("parameters-name-refused", file, pointer, message);
            schema.findings.push(finding.at_key().help(names::HELP).warning());
        }
    }
    is_sound.then_some(bundled)
}

/// A shared file is held to the same rules as `schema.json`. Whoever uses it reports it; the build keeps one.
fn check_shared(schema: &mut Schema<'_>, name: &str) {
    let Some((text, value)) = schema.shared.text(name).zip(schema.shared.value(name)) else { return };
    let file = format!("../_shared/{name}");
    report_duplicates(&file, text, schema.findings);
    hidden::check_json(&file, value, text, schema.findings);
}

/// A pointer into a pulled-in definition belongs to the shared file that it came from.
fn whose(keys: &[(String, String)], pointer: &str, at: &str) -> (Cow<'static, str>, String) {
    for (key, name) in keys {
        let Some(rest) = pointer.strip_prefix("/$defs/").and_then(|rest| rest.strip_prefix(key.as_str()))
        else {
            continue;
        };
        if rest.is_empty() || rest.starts_with('/') {
            return (Cow::Owned(format!("../_shared/{name}")), rest.to_owned());
        }
    }
    (Cow::Borrowed(FILE), format!("{at}{pointer}"))
}
