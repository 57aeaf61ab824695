//! The `json` blocks of a doc's Examples: arguments that fit the tool, or envelopes that fit the contract.
//! Documentation that no longer fits the schema fails the build.

use serde_json::{Map, Value};
use toolwright_contract::{ErrorKind, IntentKind};

use super::Findings;
use crate::diagnostic::{Finding, Place};
use crate::docs::{Example, ExampleKind};
use crate::json::{self, duplicate_keys, locate};
use toolwright_contract::suggest::did_you_mean;
use toolwright_schema::pointer::{Part, child_pointer};
use toolwright_schema::{Validator, value_problems};

const FILE: &str = "doc.md";

/// Checks each example. Without a validator (the schema itself is broken) only their syntax.
pub(super) fn check_examples(
    examples: &[Example],
    validator: Option<(&Validator, &Value)>,
    findings: &mut Findings,
) {
    for example in examples {
        let parsed = match json::parse(&example.text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let place = Place::Span(example.in_file(&error.span));
                findings
                    .push(Finding::error(
                        "example-syntax",
                        FILE,
                        place,
                        format!("the example is not JSON: {}", error.message),
                    ))
                    .help("examples in `json` blocks are checked; fence other text differently");
                continue;
            }
        };
        if parsed.has_duplicate_keys {
            for (span, key) in duplicate_keys(&example.text) {
                let place = Place::Span(example.in_file(&span));
                findings.push(Finding::error(
                    "json-duplicate-key",
                    FILE,
                    place,
                    format!("the key `{key}` stands twice in one object"),
                ));
            }
        }
        match &parsed.value {
            _ if example.kind == ExampleKind::JsonResult => {}
            Value::Object(members) if members.get("ok").is_some_and(Value::is_boolean) => {
                check_envelope(example, members, findings);
            }
            arguments => check_arguments(example, arguments, validator, findings),
        }
    }
}

fn check_arguments(
    example: &Example,
    arguments: &Value,
    validator: Option<(&Validator, &Value)>,
    findings: &mut Findings,
) {
    let Some((validator, schema)) = validator else { return };
    for problem in value_problems(validator, schema, arguments) {
        let place = place(example, &problem.pointer, problem.part);
        let reported = findings.push(Finding::error(
            "example-refused",
            FILE,
            place,
            format!("the example does not fit the schema: {}", problem.message),
        ));
        match problem.help {
            Some(help) => reported.help(help),
            None => reported.help("mend the example; a block that shows a result is fenced as `json result`"),
        };
    }
}

fn place(example: &Example, pointer: &str, part: Part) -> Place {
    let span = locate(&example.text, pointer, part).unwrap_or(0..example.text.len());
    Place::Span(example.in_file(&span))
}

fn check_envelope(example: &Example, members: &Map<String, Value>, findings: &mut Findings) {
    let mut refuse = |pointer: &str, part, message: String, help: Option<String>| {
        let finding = Finding::error("example-envelope", FILE, place(example, pointer, part), message);
        let reported = findings.push(finding);
        if let Some(help) = help {
            reported.help(help);
        }
    };
    let succeeded = members.get("ok") == Some(&Value::Bool(true));
    let known: &[&str] =
        if succeeded { &["ok", "data", "intents", "meta"] } else { &["ok", "error", "meta"] };
    for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
        let message = format!("an envelope with `ok: {succeeded}` has no `{name}`");
        refuse(&child_pointer("", name), Part::Key, message, Some(did_you_mean(name, known)));
    }
    let needed = if succeeded { "data" } else { "error" };
    if !members.contains_key(needed) {
        refuse("/ok", Part::Key, format!("an envelope with `ok: {succeeded}` needs `{needed}`"), None);
    }
    if let Some(error) = members.get("error").filter(|_| !succeeded) {
        check_error(error, &mut refuse);
    }
    if members.get("intents").is_some_and(|intents| !intents.is_array()) {
        refuse("/intents", Part::Value, "`intents` is a list".to_owned(), None);
    }
    for (index, intent) in members.get("intents").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        match intent.get("type").and_then(Value::as_str) {
            Some(kind) if IntentKind::from_word(kind).is_some() => {}
            Some(kind) => {
                let message = format!("`{kind}` is not an intent");
                refuse(
                    &format!("/intents/{index}/type"),
                    Part::Value,
                    message,
                    Some(did_you_mean(kind, IntentKind::WORDS)),
                );
            }
            None => {
                refuse(&format!("/intents/{index}"), Part::Value, "an intent needs a `type`".to_owned(), None)
            }
        }
    }
}

fn check_error(error: &Value, refuse: &mut impl FnMut(&str, Part, String, Option<String>)) {
    match error.get("type").and_then(Value::as_str) {
        Some(kind) if ErrorKind::from_word(kind).is_some() => {}
        Some(kind) => {
            let message = format!("`{kind}` is not an error type");
            refuse("/error/type", Part::Value, message, Some(did_you_mean(kind, ErrorKind::WORDS)));
        }
        None => refuse("/error", Part::Key, "an error needs a `type`".to_owned(), None),
    }
    if !error.get("message").is_some_and(Value::is_string) {
        refuse("/error", Part::Key, "an error needs a `message`".to_owned(), None);
    }
    for name in ["retryable", "partialSideEffects"] {
        if error.get(name).is_some_and(|value| !value.is_boolean()) {
            refuse(&format!("/error/{name}"), Part::Value, format!("`{name}` is true or false"), None);
        }
    }
}
