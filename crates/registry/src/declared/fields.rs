//! The values of a definition's fields: of the right type, or reported. What is absent is the caller's to judge.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};
use toolwright_contract::Mode;

use super::{Report, shown};
use toolwright_contract::suggest::{did_you_mean, list};

/// Reports the members that are not in `known`.
pub(super) fn unknown(report: &mut Report<'_>, members: &Map<String, Value>, at: &str, known: &[&str]) {
    for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
        report.problem(format!("unknown field `{at}{}`", shown(name)), did_you_mean(name, known));
    }
}

/// A member that has to be there.
pub(super) fn required<'v>(
    report: &mut Report<'_>,
    members: &'v Map<String, Value>,
    name: &str,
    help: &str,
) -> Option<&'v Value> {
    let value = members.get(name);
    if value.is_none() {
        report.problem(format!("`{name}` is missing"), help);
    }
    value
}

/// A string that says something.
pub(super) fn text<'v>(report: &mut Report<'_>, name: &str, value: &'v Value) -> Option<&'v str> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Some(text),
        Some(_) => {
            report.problem(format!("`{name}` must not be empty"), "write what it should say");
            None
        }
        None => wrong_type(report, name, value, "a string"),
    }
}

/// `true` or `false`.
pub(super) fn boolean(report: &mut Report<'_>, name: &str, value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| wrong_type(report, name, value, "true or false"))
}

/// One of the words of an enumeration.
pub(super) fn word<T>(
    report: &mut Report<'_>,
    name: &str,
    value: &Value,
    words: &[&str],
    from_word: fn(&str) -> Option<T>,
) -> Option<T> {
    let Some(word) = value.as_str() else {
        return wrong_type(report, name, value, &format!("one of {}", list(words)));
    };
    let found = from_word(word);
    if found.is_none() {
        let message = format!("`{name}` is `{}`, not one of {}", shown(word), list(words));
        report.problem(message, did_you_mean(word, words));
    }
    found
}

/// A number of milliseconds.
pub(super) fn milliseconds(report: &mut Report<'_>, name: &str, value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|number| number > 0.0) => Some(number.clone()),
        Value::Number(_) => {
            report.problem(format!("`{name}` must be greater than 0"), "it counts milliseconds");
            None
        }
        _ => wrong_type(report, name, value, "a number of milliseconds"),
    }
}

/// Both modes, or one.
pub(super) fn modes(report: &mut Report<'_>, name: &str, value: &Value) -> Option<Vec<Mode>> {
    let Some(items) = value.as_array() else {
        return wrong_type(report, name, value, "a list of `text` and `voice`");
    };
    let mut modes = Vec::new();
    for item in items {
        let mode = word(report, name, item, Mode::WORDS, Mode::from_word)?;
        if modes.contains(&mode) {
            report.problem(format!("`{name}` names `{}` twice", mode.as_str()), "name each mode once");
            return None;
        }
        modes.push(mode);
    }
    if modes.is_empty() {
        report.problem(format!("`{name}` must name at least one mode"), "`text`, `voice` or both");
    }
    Some(modes)
}

/// A list of strings, each once.
pub(super) fn strings(report: &mut Report<'_>, name: &str, value: &Value) -> Option<Vec<String>> {
    let Some(items) = value.as_array() else {
        return wrong_type(report, name, value, "a list of strings");
    };
    let mut strings = BTreeSet::new();
    for item in items {
        let item = text(report, name, item)?;
        if !strings.insert(item) {
            report.problem(format!("`{name}` names `{}` twice", shown(item)), "name each once");
            return None;
        }
    }
    Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Reports a value of another type than it should have.
pub(super) fn wrong_type<T>(report: &mut Report<'_>, name: &str, value: &Value, expected: &str) -> Option<T> {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    };
    report.problem(format!("`{name}` must be {expected}, not {found}"), format!("write {expected}"));
    None
}
