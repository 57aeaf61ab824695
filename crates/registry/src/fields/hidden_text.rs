//! Hidden Unicode in texts that a model reads: a person does not see it.

use serde_json::Value;
use toolwright_schema::pointer::child_pointer;

use super::field_path;
use crate::diagnostic::{DiagnosticDraft, Location};
use crate::hidden_unicode::hidden_unicode;

const HELP: &str = "remove it: a model reads it, a person does not";

/// Checks a text file.
pub(crate) fn check_text(file: &'static str, text: &str, diagnostics: &mut Vec<DiagnosticDraft>) {
    for (span, character) in hidden_unicode(text) {
        let message = message(file, character);
        let draft = DiagnosticDraft::error("hidden-unicode", file, Location::Span(span), message);
        diagnostics.push(draft.with_help(HELP));
    }
}

/// Checks every key and string of a JSON file, escaped ones too. Plain ASCII cannot hide anything.
pub(crate) fn check_json_text(file: &str, value: &Value, text: &str, diagnostics: &mut Vec<DiagnosticDraft>) {
    if !text.is_ascii() || text.contains("\\u") {
        check_value(file, value, "", diagnostics);
    }
}

/// Checks every key and string of a value.
pub(crate) fn check_value(file: &str, value: &Value, pointer: &str, diagnostics: &mut Vec<DiagnosticDraft>) {
    match value {
        Value::String(text) => diagnostics.extend(hidden_in(file, text, pointer)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_value(file, item, &format!("{pointer}/{index}"), diagnostics);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                let pointer = child_pointer(pointer, key);
                if let Some(draft) = hidden_in(file, key, &pointer) {
                    diagnostics.push_mut(draft).at_key();
                }
                check_value(file, value, &pointer, diagnostics);
            }
        }
        _ => {}
    }
}

fn hidden_in(file: &str, text: &str, pointer: &str) -> Option<DiagnosticDraft> {
    let (_, character) = *hidden_unicode(text).first()?;
    let path = if pointer.is_empty() { file.to_owned() } else { field_path(pointer) };
    let message = message(&path, character);
    Some(DiagnosticDraft::json("hidden-unicode", file.to_owned(), pointer, message).with_help(HELP))
}

fn message(name: &str, character: char) -> String {
    format!("`{name}` has the hidden character U+{:04X}", u32::from(character))
}
