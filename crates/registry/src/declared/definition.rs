//! One definition of a declared file: checked, and turned into a tool.

use serde_json::{Map, Value};
use toolwright_contract::suggest::{list, nearest};
use toolwright_contract::{BUILTIN_HANDLERS, ToolSpec};
use toolwright_schema::pointer::child_pointer;

use super::{Version, declared_http};
use crate::diagnostic::DiagnosticDraft;
use crate::excerpt::{excerpt, value_excerpt};
use crate::fields::{self, FieldCheck, check_value};
use crate::shared::Shared;
use crate::toolset::{Implementation, Tool};

/// The fields that only declared tools have; the others are in the table of all fields.
const DECLARED_ONLY: [&str; 5] = ["name", "type", "handler", "implementation", "summary"];

/// The types of implementation that a file of this version can use.
fn implementation_types(version: Version) -> &'static [&'static str] {
    match version {
        Version::First => &["mock", "builtin", "internal"],
        Version::Second => &["mock", "builtin", "internal", "http"],
    }
}

const MAX_NAME_BYTES: usize = 128;
const MAX_SUMMARY_CHARACTERS: usize = 250;

/// The context that definitions are checked in.
pub(super) struct Rules<'a> {
    /// Whether the program registers a handler of this name.
    pub is_registered: &'a dyn Fn(&str) -> bool,
    pub version: Version,
}

/// A definition with errors.
pub(super) struct DefinitionErrors {
    /// The tool's name, if it is valid.
    pub name: Option<String>,
    pub diagnostics: Vec<DiagnosticDraft>,
}

/// The tool, or everything that is wrong with its definition.
pub(super) fn read(index: usize, value: &Value, rules: &Rules<'_>) -> Result<Tool, DefinitionErrors> {
    let Some(members) = value.as_object() else {
        let message = format!("`tools[{index}]` must be an object, got {}", value_excerpt(value));
        let draft = DiagnosticDraft::json("field-type", "", "", message);
        let diagnostics = vec![draft.with_help("write an object with `name`, `description` and so on")];
        return Err(DefinitionErrors { name: None, diagnostics });
    };
    let shared = Shared::default();
    let mut check = FieldCheck::new("", members, &shared);
    let known: Vec<&str> = DECLARED_ONLY.into_iter().chain(fields::declared_names()).collect();
    check.unknown_fields(members, "", &known);
    let name = name(&mut check);
    // A mock's response may be any value.
    for (name, value) in members.iter().filter(|(name, _)| *name != "implementation") {
        let pointer = child_pointer("", name);
        check_value("", &Value::from(name.as_str()), &pointer, &mut check.diagnostics);
        check_value("", value, &pointer, &mut check.diagnostics);
    }
    check_type(&mut check);
    if let Some(handler) = members.get("handler") {
        check.text(handler, "/handler");
    }
    let is_mock = value.pointer("/implementation/type").is_some_and(|kind| kind == "mock");
    check.check_declared(is_mock);
    let implementation = implementation(&mut check, rules);
    let summary = summary(&mut check);
    let spec = name.and_then(|name| spec(&mut check, name, is_mock));
    match (spec, implementation) {
        (Some(spec), Some(implementation)) if check.diagnostics.is_empty() => {
            Ok(Tool { spec, summary, implementation })
        }
        _ => Err(DefinitionErrors { name: name.map(str::to_owned), diagnostics: check.diagnostics }),
    }
}

/// Reads the checked fields. `None` if there are errors.
fn spec(check: &mut FieldCheck<'_>, name: &str, is_mock: bool) -> Option<ToolSpec> {
    if !check.diagnostics.is_empty() {
        return None;
    }
    let mut spec = fields::declared_spec(check.members, is_mock);
    spec.insert("toolId".to_owned(), name.into());
    match serde_json::from_value(Value::Object(spec)) {
        Ok(spec) => Some(spec),
        Err(error) => {
            check.error("field-value", "", format!("`{name}` cannot be read: {error}"));
            None
        }
    }
}

/// Models, logs and URLs use the name, so it has no spaces or special characters.
fn name<'v>(check: &mut FieldCheck<'v>) -> Option<&'v str> {
    let Some(value) = check.members.get("name") else {
        check.missing("", "name", "give the tool a name");
        return None;
    };
    let name = check.text(value, "/name")?;
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if is_plain && name.len() <= MAX_NAME_BYTES {
        return Some(name);
    }
    let message = format!("`name` is `{}`, which models cannot call", excerpt(name));
    check
        .error("field-value", "/name", message)
        .help(format!("use letters, digits, `_`, `-` and `.`, at most {MAX_NAME_BYTES} of them"));
    None
}

fn check_type(check: &mut FieldCheck<'_>) {
    let help = "write `function`, the only type";
    match check.members.get("type") {
        Some(kind) if kind == "function" => {}
        Some(kind) => {
            let message = format!("`type` must be `function`, got {}", value_excerpt(kind));
            check.error("field-value", "/type", message).help(help);
        }
        None => check.missing("", "type", help),
    }
}

fn implementation(check: &mut FieldCheck<'_>, rules: &Rules<'_>) -> Option<Implementation> {
    let at = "/implementation";
    let types = implementation_types(rules.version);
    let help = format!("set `type` to one of {}", list(types));
    let Some(value) = check.members.get("implementation") else {
        check.missing("", "implementation", help);
        return None;
    };
    let members = check.object(value, at, "an object with `type`")?;
    let Some(kind) = members.get("type") else {
        check.missing(at, "type", help);
        return None;
    };
    match kind.as_str() {
        Some("mock") => {
            check.unknown_fields(members, at, &["type", "mock_response", "handler"]);
            let response = members.get("mock_response").cloned();
            if response.is_none() {
                check.missing(at, "mock_response", "write the result of every call: any value, or null");
            }
            response.map(Implementation::Mock)
        }
        Some("builtin" | "internal") => {
            check.unknown_fields(members, at, &["type", "handler"]);
            native(check, members, rules)
        }
        Some("http") if rules.version == Version::Second => {
            declared_http::read(check, members).map(|tool| Implementation::Http(Box::new(tool)))
        }
        Some("http") => {
            let message = "HTTP tools not yet supported (coming in v2)";
            check
                .error("field-value", "/implementation/type", message)
                .help(format!("write `version: 2` at the top of the file, or use one of {}", list(types)));
            None
        }
        _ => {
            check.one_of(kind, "/implementation/type", types);
            None
        }
    }
}

/// The registered handler. Its name is either in `implementation` or in the definition itself.
fn native(
    check: &mut FieldCheck<'_>,
    implementation: &Map<String, Value>,
    rules: &Rules<'_>,
) -> Option<Implementation> {
    let handler = match (implementation.get("handler"), check.members.get("handler")) {
        (Some(handler), _) => check.text(handler, "/implementation/handler")?,
        // A handler that is not a text is reported already.
        (None, Some(handler)) => handler.as_str().filter(|handler| !handler.trim().is_empty())?,
        (None, None) => {
            let help =
                format!("name a handler: {}, or one that the program registers", list(BUILTIN_HANDLERS));
            check.missing("/implementation", "handler", help);
            return None;
        }
    };
    if BUILTIN_HANDLERS.contains(&handler) || (rules.is_registered)(handler) {
        return Some(Implementation::Native(handler.to_owned()));
    }
    check
        .error(
            "field-value",
            "/implementation/handler",
            format!("no handler `{}` is registered", excerpt(handler)),
        )
        .help(match nearest(handler, BUILTIN_HANDLERS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "use a builtin handler ({}), or register this one in a program that embeds Toolwright",
                list(BUILTIN_HANDLERS)
            ),
        });
    None
}

/// The tool's text in a prompt: one line, so that a description cannot imitate the prompt's structure.
fn summary(check: &mut FieldCheck<'_>) -> String {
    let Some(value) = check.members.get("summary") else {
        let description = check.members.get("description").and_then(Value::as_str);
        return shorten(one_line(description.unwrap_or_default()));
    };
    let summary = one_line(check.text(value, "/summary").unwrap_or_default());
    let length = summary.chars().count();
    if length > MAX_SUMMARY_CHARACTERS {
        let message =
            format!("`summary` has {length} characters, at most {MAX_SUMMARY_CHARACTERS} are allowed");
        check
            .error("field-value", "/summary", message)
            .help("shorten it, or leave it out: then the description is shortened");
    }
    summary
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The opening words and an ellipsis, if the text is too long for a summary.
fn shorten(text: String) -> String {
    if text.chars().count() <= MAX_SUMMARY_CHARACTERS {
        return text;
    }
    let head: String = text.chars().take(MAX_SUMMARY_CHARACTERS).collect();
    let words = head.rsplit_once(' ').map_or_else(
        || head.chars().take(MAX_SUMMARY_CHARACTERS - 1).collect::<String>(),
        |(words, _)| words.to_owned(),
    );
    words.trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned() + "…"
}
