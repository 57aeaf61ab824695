//! `schema.json` as a whole: parsed, its fields checked one by one and against each other.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Findings, fields};
use crate::diagnostic::{Finding, Place};
use crate::json::{self, duplicate_keys};
use crate::shared::Shared;
use toolwright_contract::suggest::list;
use toolwright_schema::Validator;
use toolwright_schema::pointer::child_pointer;

pub(super) const FILE: &str = "schema.json";
static NO_PARAMETERS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// What the checks of single fields see, and where their findings go.
pub(super) struct Schema<'a> {
    pub directory: &'a str,
    pub members: &'a Map<String, Value>,
    pub shared: &'a Shared,
    pub findings: &'a mut Findings,
    /// `parameters` and `output` with shared definitions pulled in, when that changed them.
    pub bundled_parameters: Option<Value>,
    pub bundled_output: Option<Value>,
    /// Of `parameters`, when they are sound.
    pub validator: Option<Validator>,
}

impl<'a> Schema<'a> {
    /// Reports an error at a value of this file.
    pub fn error(
        &mut self,
        code: &'static str,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> super::Reported<'_> {
        self.findings.push(Finding::json(code, FILE, pointer, message))
    }

    /// The properties of `parameters`, whatever state they are in.
    pub fn parameter_names(&self) -> &'a Map<String, Value> {
        let properties = self.members.get("parameters").and_then(|parameters| parameters.get("properties"));
        properties.and_then(Value::as_object).unwrap_or(&NO_PARAMETERS)
    }
}

/// A `schema.json` that could be read.
pub(super) struct SchemaFile {
    pub members: Map<String, Value>,
    /// Of `parameters`, when they are sound.
    pub validator: Option<Validator>,
}

/// Checks the text. `None` when it is not even an object.
pub(super) fn check_schema_file(
    directory: &str,
    text: &str,
    shared: &Shared,
    findings: &mut Findings,
) -> Option<SchemaFile> {
    let parsed = match json::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let place = Place::Span(error.span);
            findings.push(Finding::error("json-syntax", FILE, place, format!("not JSON: {}", error.message)));
            return None;
        }
    };
    if parsed.has_duplicate_keys {
        report_duplicates(FILE, text, findings);
    }
    super::hidden::check_json(FILE, &parsed.value, text, findings);
    let Value::Object(mut members) = parsed.value else {
        findings.push(Finding::json("field-type", FILE, "", "must be an object"));
        return None;
    };
    let mut schema = Schema {
        directory,
        members: &members,
        shared,
        findings,
        bundled_parameters: None,
        bundled_output: None,
        validator: None,
    };
    fields::check_fields(&mut schema, &members);
    check_rules(&mut schema, &members);
    let Schema { bundled_parameters, bundled_output, validator, .. } = schema;
    for (name, bundled) in [("parameters", bundled_parameters), ("output", bundled_output)] {
        if let Some(bundled) = bundled {
            members.insert(name.to_owned(), bundled);
        }
    }
    Some(SchemaFile { members, validator })
}

/// Every key that repeats an earlier one of its object.
pub(super) fn report_duplicates(file: &str, text: &str, findings: &mut Findings) {
    for (span, key) in duplicate_keys(text) {
        let message = format!("the key `{key}` stands twice in one object");
        findings
            .push(Finding::error("json-duplicate-key", file.to_owned(), Place::Span(span), message))
            .help("remove one of them: readers disagree on which one counts");
    }
}

/// Rules between fields. Each looks only at values that are fine by themselves.
fn check_rules(schema: &mut Schema<'_>, members: &Map<String, Value>) {
    let word = |name: &str| members.get(name).and_then(Value::as_str);
    let category = word("category");
    if category == Some("retrieval") {
        if word("sideEffects") == Some("writes") {
            schema
                .error("retrieval-writes", "/sideEffects", "a retrieval tool must not write")
                .help("`none` or `read_only`; a tool that writes is an `action`");
        }
        if members.get("idempotent") == Some(&Value::Bool(false)) {
            schema.error("retrieval-not-idempotent", "/idempotent", "a retrieval tool must be idempotent");
        }
    }
    let never_asks = members.get("requiresConfirmation") == Some(&Value::Bool(false));
    if category == Some("action") && word("sideEffects") == Some("writes") && never_asks {
        schema
            .error(
                "writes-unconfirmed",
                "/requiresConfirmation",
                "an action that writes runs without anybody's approval",
            )
            .help("set it to true or to a rule `{ \"when\": … }`, unless that is intended")
            .warning();
    }
    let speaks = members.get("allowedModes").and_then(Value::as_array);
    let speaks = speaks.is_some_and(|modes| modes.iter().any(|mode| mode == "voice"));
    let budget = members.get("latencyBudgetMs").and_then(Value::as_f64);
    if speaks && budget.is_some_and(|budget| budget > 1000.0) {
        schema
            .error("voice-latency", "/latencyBudgetMs", "more than 1000 ms is long for a voice conversation")
            .help("lower the budget, or leave `voice` out of allowedModes")
            .warning();
    }
    if let (Some(budget), Some(timeout)) = (budget, members.get("timeoutMs").and_then(Value::as_f64))
        && timeout < budget
    {
        schema
            .error(
                "timeout-below-budget",
                "/timeoutMs",
                format!("the hard limit is below the latency budget of {budget} ms"),
            )
            .help("timeoutMs stops the call; latencyBudgetMs is only what is expected");
    }
    check_clamp_modes(schema, members);
}

/// A clamp for a mode that the tool does not serve never applies: a slip.
fn check_clamp_modes(schema: &mut Schema<'_>, members: &Map<String, Value>) {
    let (Some(clamp), Some(modes)) = (
        members.get("clamp").and_then(Value::as_object),
        members.get("allowedModes").and_then(Value::as_array),
    ) else {
        return;
    };
    let allowed: Vec<&str> = modes.iter().filter_map(Value::as_str).collect();
    for mode in clamp.keys().filter(|mode| toolwright_contract::Mode::from_word(mode).is_some()) {
        if !allowed.contains(&mode.as_str()) {
            schema
                .error(
                    "clamp-mode",
                    child_pointer("/clamp", mode),
                    format!("the tool is not allowed in `{mode}` mode"),
                )
                .at_key()
                .help(format!("allowedModes has {}", list(&allowed)))
                .warning();
        }
    }
}
