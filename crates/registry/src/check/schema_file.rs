//! `schema.json` as a whole: parsed, then its fields checked.

use serde_json::{Map, Value};
use toolwright_schema::Validator;

use super::Context;
use crate::diagnostic::{DiagnosticDraft, Location};
use crate::excerpt::value_excerpt;
use crate::fields::{FieldCheck, SCHEMA_FILE, check_json_text, report_duplicate_keys};
use crate::json;

/// A `schema.json` that is an object, valid or not.
pub(super) struct SchemaFile {
    /// Its fields, with shared definitions pulled in.
    pub members: Map<String, Value>,
    /// Compiled from `parameters`; `None` if they are not a valid schema.
    pub validator: Option<Validator>,
}

/// Checks the text. `None` if it is not a JSON object.
pub(super) fn check_schema_file(
    directory: &str,
    text: &str,
    context: &Context<'_>,
    diagnostics: &mut Vec<DiagnosticDraft>,
) -> Option<SchemaFile> {
    let parsed = match json::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = format!("`{SCHEMA_FILE}` is not JSON: {}", error.message);
            let location = Location::Span(error.span);
            diagnostics.push(DiagnosticDraft::error("json-syntax", SCHEMA_FILE, location, message));
            return None;
        }
    };
    report_duplicate_keys(SCHEMA_FILE, &parsed.duplicate_keys, diagnostics);
    check_json_text(SCHEMA_FILE, &parsed.value, text, diagnostics);
    let Value::Object(mut members) = parsed.value else {
        let message = format!("`{SCHEMA_FILE}` must be an object, got {}", value_excerpt(&parsed.value));
        diagnostics.push(DiagnosticDraft::json("field-type", SCHEMA_FILE, "", message));
        return None;
    };
    let mut check = FieldCheck::new(directory, &members, context.shared);
    check.formats = context.formats;
    check.check_schema_file();
    diagnostics.append(&mut check.diagnostics);
    let FieldCheck { bundled_parameters, bundled_output, validator, .. } = check;
    for (name, bundled) in [("parameters", bundled_parameters), ("output", bundled_output)] {
        if let Some(bundled) = bundled {
            members.insert(name.to_owned(), bundled);
        }
    }
    Some(SchemaFile { members, validator })
}
