//! Hidden Unicode in what a model reads: it is how tools are poisoned.

use serde_json::{Map, Value};

use super::Findings;
use crate::diagnostic::{Finding, Place};
use crate::hidden::hidden_unicode;
use crate::json::child_pointer;

const HELP: &str = "remove it: a model reads it, a person does not";

/// Checks a text file.
pub(super) fn check_text(file: &'static str, text: &str, findings: &mut Findings) {
    for (span, character) in hidden_unicode(text) {
        findings
            .push(Finding::error("hidden-unicode", file, Place::Span(span), message(character)))
            .help(HELP);
    }
}

/// Checks every key and string of `schema.json`, escaped ones too.
pub(super) fn check_schema(members: &Map<String, Value>, text: &str, findings: &mut Findings) {
    if text.is_ascii() && !text.contains("\\u") {
        return;
    }
    check_members(members, "", findings);
}

fn check_members(members: &Map<String, Value>, pointer: &str, findings: &mut Findings) {
    for (key, value) in members {
        let at = child_pointer(pointer, key);
        if let Some((_, character)) = hidden_unicode(key).first() {
            let finding =
                Finding::json("hidden-unicode", super::schema_file::FILE, at.clone(), message(*character));
            findings.push(finding).at_key().help(HELP);
        }
        check_value(value, &at, findings);
    }
}

fn check_value(value: &Value, pointer: &str, findings: &mut Findings) {
    match value {
        Value::String(text) => {
            if let Some((_, character)) = hidden_unicode(text).first() {
                let finding =
                    Finding::json("hidden-unicode", super::schema_file::FILE, pointer, message(*character));
                findings.push(finding).help(HELP);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_value(item, &format!("{pointer}/{index}"), findings);
            }
        }
        Value::Object(members) => check_members(members, pointer, findings),
        _ => {}
    }
}

fn message(character: char) -> String {
    format!("hidden character U+{:04X}", u32::from(character))
}
