//! One definition: checked as a whole, and turned into a tool.

use serde_json::{Map, Value};

use super::parameters::parameters;
use super::traits::Traits;
use super::{Report, Version, fields, http, shown};
use crate::hidden::hidden_unicode;
use crate::toolset::{Implementation, Tool};
use toolwright_contract::suggest::list;

const FIELDS: &[&str] = &[
    "name",
    "description",
    "type",
    "handler",
    "parameters",
    "implementation",
    "version",
    "category",
    "sideEffects",
    "idempotent",
    "requiresConfirmation",
    "allowedModes",
    "latencyBudgetMs",
    "timeoutMs",
    "tags",
    "summary",
];

/// The kinds of implementation that can be registered.
const KINDS: &[&str] = &["mock", "builtin", "internal"];

const LONGEST_NAME: usize = 128;
const LONGEST_SUMMARY: usize = 250;

/// What the file and the program say about definitions.
pub(super) struct Rules<'a> {
    pub is_registered: &'a dyn Fn(&str) -> bool,
    pub version: Version,
}

/// The tool, unless something is wrong with it: then everything that is has been reported.
pub(super) fn read(report: &mut Report<'_>, value: &Value, rules: &Rules<'_>) -> Option<Tool> {
    let before = report.count();
    let Some(members) = value.as_object() else {
        return fields::wrong_type(report, "tools", value, "a list of tables");
    };
    let name = name(report, members);
    fields::unknown(report, members, "", FIELDS);
    refuse_hidden(report, members);
    let description = fields::required(report, members, "description", "say what the tool does")
        .and_then(|value| fields::text(report, "description", value));
    function(report, members);
    if let Some(handler) = members.get("handler") {
        fields::text(report, "handler", handler);
    }
    let parameters = parameters(report, members);
    let implementation = implementation(report, members, rules, parameters);
    let traits = Traits::read(report, members, matches!(implementation, Some(Implementation::Mock(_))));
    let description = description?.to_owned();
    let summary = summary(report, members, &description);
    let spec = traits.into_spec(name?.to_owned(), description, parameters?.clone());
    let tool = Tool { spec, summary, implementation: implementation? };
    (report.count() == before).then_some(tool)
}

/// A name is what models, logs and addresses call the tool, so it has no spaces or signs.
fn name<'v>(report: &mut Report<'_>, members: &'v Map<String, Value>) -> Option<&'v str> {
    let value = fields::required(report, members, "name", "give the tool a name")?;
    let name = fields::text(report, "name", value)?;
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if plain && name.len() <= LONGEST_NAME {
        report.tool = Some(name.to_owned());
        return Some(name);
    }
    report.problem(
        format!("`name` is `{}`, which models cannot call", shown(name)),
        format!("use letters, digits, `_`, `-` and `.`, at most {LONGEST_NAME} of them"),
    );
    None
}

fn function(report: &mut Report<'_>, members: &Map<String, Value>) {
    let help = "write `function`, the only type there is";
    match fields::required(report, members, "type", help) {
        Some(kind) if kind != "function" => report.problem("`type` must be `function`", help),
        _ => {}
    }
}

fn implementation(
    report: &mut Report<'_>,
    members: &Map<String, Value>,
    rules: &Rules<'_>,
    parameters: Option<&Value>,
) -> Option<Implementation> {
    let help = format!("say what answers a call: a `type` that is one of {}", list(KINDS));
    let value = fields::required(report, members, "implementation", &help)?;
    let Some(how) = value.as_object() else {
        return fields::wrong_type(report, "implementation", value, "a table with `type`");
    };
    let Some(kind) = how.get("type") else {
        report.problem("`implementation.type` is missing", help);
        return None;
    };
    match kind.as_str() {
        Some("mock") => {
            fields::unknown(report, how, "implementation.", &["type", "mock_response", "handler"]);
            let response = how.get("mock_response").cloned();
            if response.is_none() {
                let help = "write what every call gets: any value, null included";
                report.problem("`implementation.mock_response` is missing", help);
            }
            response.map(Implementation::Mock)
        }
        Some("builtin" | "internal") => {
            fields::unknown(report, how, "implementation.", &["type", "handler"]);
            native(report, members, how, rules)
        }
        Some("http") if rules.version == Version::Second => {
            http::read(report, how, parameters).map(|tool| Implementation::Http(Box::new(tool)))
        }
        Some("http") => {
            http::refuse(report, KINDS);
            None
        }
        _ => fields::word(report, "implementation.type", kind, KINDS, |_| None),
    }
}

/// The registered handler. A definition that names it once, beside the description, means the same.
fn native(
    report: &mut Report<'_>,
    members: &Map<String, Value>,
    how: &Map<String, Value>,
    rules: &Rules<'_>,
) -> Option<Implementation> {
    let handler = match (how.get("handler"), members.get("handler")) {
        (Some(inner), _) => fields::text(report, "implementation.handler", inner)?,
        // What is wrong with it has been reported.
        (None, Some(outer)) => outer.as_str().filter(|outer| !outer.trim().is_empty())?,
        (None, None) => {
            let help = "name a handler that the program registers";
            report.problem("`implementation.handler` is missing", help);
            return None;
        }
    };
    if (rules.is_registered)(handler) {
        return Some(Implementation::Native(handler.to_owned()));
    }
    let message = format!("no handler `{}` is registered", shown(handler));
    report.problem(message, "mend the name, or register the handler in the program");
    None
}

/// What a prompt says of the tool: one line, so that no description can pose as the prompt itself.
fn summary(report: &mut Report<'_>, members: &Map<String, Value>, description: &str) -> String {
    let Some(value) = members.get("summary") else { return cut(&one_line(description)) };
    let summary = one_line(fields::text(report, "summary", value).unwrap_or_default());
    let length = summary.chars().count();
    if length > LONGEST_SUMMARY {
        let message = format!("`summary` has {length} characters, at most {LONGEST_SUMMARY} are allowed");
        report.problem(message, "shorten it, or leave it out: then the description is cut");
    }
    summary
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The opening words, with a sign that there are more.
fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST_SUMMARY {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST_SUMMARY).collect();
    let words = head.rsplit_once(' ').map_or_else(
        || head.chars().take(LONGEST_SUMMARY - 1).collect::<String>(),
        |(words, _)| words.to_owned(),
    );
    words.trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned() + "…"
}

/// Everything that a model may read before a call. A mock's response is any value there is.
fn refuse_hidden(report: &mut Report<'_>, members: &Map<String, Value>) {
    for (name, value) in members.iter().filter(|(name, _)| name.as_str() != "implementation") {
        if let Some(character) = hidden(name).or_else(|| hidden_in(value)) {
            let message =
                format!("`{}` has the hidden character U+{:04X}", shown(name), u32::from(character));
            report.problem(message, "remove it: a model reads it, a person does not");
        }
    }
}

fn hidden_in(value: &Value) -> Option<char> {
    match value {
        Value::String(text) => hidden(text),
        Value::Array(items) => items.iter().find_map(hidden_in),
        Value::Object(members) => {
            members.iter().find_map(|(name, value)| hidden(name).or_else(|| hidden_in(value)))
        }
        _ => None,
    }
}

fn hidden(text: &str) -> Option<char> {
    hidden_unicode(text).first().map(|(_, character)| *character)
}
