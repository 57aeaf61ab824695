//! The `json` blocks of a doc's Examples: arguments that match `parameters`, or envelopes as the contract has them.
//! An example that no longer matches the schema fails the build.

use serde_json::{Map, Value};
use toolwright_contract::suggest::did_you_mean;
use toolwright_contract::{ErrorKind, IntentKind};
use toolwright_schema::pointer::{Part, child_pointer};
use toolwright_schema::{Validator, value_problems};

use crate::diagnostic::{DiagnosticDraft, Location};
use crate::docs::{DOC_FILE, Example, ExampleKind};
use crate::excerpt::{excerpt, value_excerpt};
use crate::json::{self, locate};

/// The beginning of a message about arguments.
const REFUSED: &str = "an example of `doc.md` does not match `parameters`: ";

/// Maximum number of problems in the finding about one example.
const MAX_NAMED: usize = 3;

/// Checks each example. Without a validator (the schema itself is not valid) only their syntax.
pub(super) fn check_examples(
    examples: &[Example],
    validator: Option<(&Validator, &Value)>,
    diagnostics: &mut Vec<DiagnosticDraft>,
) {
    for example in examples {
        let first = diagnostics.len();
        check_example(example, validator, diagnostics);
        merge(diagnostics, first);
    }
}

/// One wrong example is one finding: the first in the text, with the messages of the others.
fn merge(diagnostics: &mut Vec<DiagnosticDraft>, first: usize) {
    let mut found = diagnostics.split_off(first);
    found.sort_by_key(|draft| match &draft.location {
        Location::Span(span) => span.start,
        _ => 0,
    });
    let mut found = found.into_iter();
    let Some(mut draft) = found.next() else { return };
    let others: Vec<DiagnosticDraft> = found.collect();
    for other in others.iter().take(MAX_NAMED - 1) {
        draft.message.push_str("; ");
        draft.message.push_str(other.message.strip_prefix(REFUSED).unwrap_or(&other.message));
    }
    if others.len() >= MAX_NAMED {
        draft.message.push_str(&format!("; and {} more", others.len() + 1 - MAX_NAMED));
    }
    diagnostics.push(draft);
}

fn check_example(
    example: &Example,
    validator: Option<(&Validator, &Value)>,
    diagnostics: &mut Vec<DiagnosticDraft>,
) {
    let mut check = ExampleCheck { example, diagnostics };
    let parsed = match json::parse(&example.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = format!("an example of `{DOC_FILE}` is not JSON: {}", error.message);
            check
                .error("example-syntax", &error.span, message)
                .help("examples in `json` blocks are checked; fence other text differently");
            return;
        }
    };
    for (span, key) in &parsed.duplicate_keys {
        let message = format!("the key `{}` is repeated in one object", excerpt(key));
        check.error("json-duplicate-key", span, message).help("remove one of them");
    }
    match &parsed.value {
        _ if example.kind == ExampleKind::JsonResult => {}
        Value::Object(members) if members.get("ok").is_some_and(Value::is_boolean) => {
            check.envelope(members);
        }
        arguments => check.arguments(arguments, validator),
    }
}

struct ExampleCheck<'a> {
    example: &'a Example,
    diagnostics: &'a mut Vec<DiagnosticDraft>,
}

impl ExampleCheck<'_> {
    /// Reports an error at a span of the example's text.
    fn error(
        &mut self,
        code: &'static str,
        span: &std::ops::Range<usize>,
        message: String,
    ) -> &mut DiagnosticDraft {
        let location = Location::Span(self.example.in_file(span));
        self.diagnostics.push_mut(DiagnosticDraft::error(code, DOC_FILE, location, message))
    }

    fn span(&self, pointer: &str, part: Part) -> std::ops::Range<usize> {
        locate(&self.example.text, pointer, part).unwrap_or(0..self.example.text.len())
    }

    fn arguments(&mut self, arguments: &Value, validator: Option<(&Validator, &Value)>) {
        let Some((validator, schema)) = validator else { return };
        for problem in value_problems(validator, schema, arguments) {
            let span = self.span(&problem.pointer, problem.part);
            let message = format!("{REFUSED}{}", problem.message);
            let help = problem.help.unwrap_or_else(|| {
                "fix the example; a block that shows a result is fenced as `json result`".to_owned()
            });
            self.error("example-refused", &span, message).help(help);
        }
    }

    fn envelope_error(&mut self, pointer: &str, part: Part, message: String) -> &mut DiagnosticDraft {
        let span = self.span(pointer, part);
        self.error("example-envelope", &span, message)
    }

    fn envelope(&mut self, members: &Map<String, Value>) {
        let succeeded = members.get("ok") == Some(&Value::Bool(true));
        let known: &[&str] =
            if succeeded { &["ok", "data", "intents", "meta"] } else { &["ok", "error", "meta"] };
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = format!("an envelope with `ok: {succeeded}` has no `{}`", excerpt(name));
            self.envelope_error(&child_pointer("", name), Part::Key, message).help(did_you_mean(name, known));
        }
        let required = if succeeded { "data" } else { "error" };
        if !members.contains_key(required) {
            let message = format!("an envelope with `ok: {succeeded}` needs `{required}`");
            self.envelope_error("/ok", Part::Key, message);
        }
        if let Some(error) = members.get("error").filter(|_| !succeeded) {
            self.envelope_failure(error);
        }
        if let Some(intents) = members.get("intents") {
            self.intents(intents);
        }
    }

    fn intents(&mut self, intents: &Value) {
        let Some(intents) = intents.as_array() else {
            let message = format!("`intents` must be an array, got {}", value_excerpt(intents));
            self.envelope_error("/intents", Part::Value, message);
            return;
        };
        for (index, intent) in intents.iter().enumerate() {
            let pointer = format!("/intents/{index}");
            match intent.get("type").and_then(Value::as_str) {
                Some(kind) if IntentKind::from_word(kind).is_some() => {}
                Some(kind) => {
                    let message = format!("`intents[{index}].type` is `{}`, not an intent", excerpt(kind));
                    self.envelope_error(&format!("{pointer}/type"), Part::Value, message)
                        .help(did_you_mean(kind, IntentKind::WORDS));
                }
                None => {
                    let message = format!("`intents[{index}]` needs a `type`");
                    self.envelope_error(&pointer, Part::Value, message);
                }
            }
        }
    }

    fn envelope_failure(&mut self, error: &Value) {
        match error.get("type").and_then(Value::as_str) {
            Some(kind) if ErrorKind::from_word(kind).is_some() => {}
            Some(kind) => {
                let message = format!("`error.type` is `{}`, not an error type", excerpt(kind));
                self.envelope_error("/error/type", Part::Value, message)
                    .help(did_you_mean(kind, ErrorKind::WORDS));
            }
            None => {
                self.envelope_error("/error", Part::Key, "`error` needs a `type`".to_owned());
            }
        }
        if !error.get("message").is_some_and(Value::is_string) {
            self.envelope_error("/error", Part::Key, "`error` needs a `message`".to_owned());
        }
        for name in ["retryable", "partialSideEffects"] {
            if let Some(value) = error.get(name).filter(|value| !value.is_boolean()) {
                let message = format!("`error.{name}` must be true or false, got {}", value_excerpt(value));
                self.envelope_error(&format!("/error/{name}"), Part::Value, message);
            }
        }
    }
}
