//! Hidden Unicode in what a model reads: it is how tools are poisoned.

use serde_json::Value;

use super::{Findings, Reported};
use crate::diagnostic::{Finding, Place};
use crate::hidden::hidden_unicode;
use toolwright_schema::pointer::child_pointer;

const HELP: &str = "remove it: a model reads it, a person does not";

/// Checks a text file.
pub(super) fn check_text(file: &'static str, text: &str, findings: &mut Findings) {
    for (span, character) in hidden_unicode(text) {
        findings
            .push(Finding::error("hidden-unicode", file, Place::Span(span), message(character)))
            .help(HELP);
    }
}

/// Checks every key and string of a JSON file, escaped ones too.
pub(super) fn check_json(file: &str, value: &Value, text: &str, findings: &mut Findings) {
    if !text.is_ascii() || text.contains("\\u") {
        check_value(file, value, "", findings);
    }
}

fn check_value(file: &str, value: &Value, pointer: &str, findings: &mut Findings) {
    match value {
        Value::String(text) => drop(report(file, text, pointer, findings)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_value(file, item, &format!("{pointer}/{index}"), findings);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                let at = child_pointer(pointer, key);
                if let Some(reported) = report(file, key, &at, findings) {
                    reported.at_key();
                }
                check_value(file, value, &at, findings);
            }
        }
        _ => {}
    }
}

fn report<'f>(file: &str, text: &str, pointer: &str, findings: &'f mut Findings) -> Option<Reported<'f>> {
    let (_, character) = *hidden_unicode(text).first()?;
    let finding = Finding::json("hidden-unicode", file.to_owned(), pointer, message(character));
    Some(findings.push(finding).help(HELP))
}

fn message(character: char) -> String {
    format!("hidden character U+{:04X}", u32::from(character))
}
