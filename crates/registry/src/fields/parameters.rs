//! `parameters` and `output`: JSON Schemas that must compile under the strict rules, defaults included.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use toolwright_contract::suggest::nearest;
use toolwright_schema::pointer::{Part, child_pointer};
use toolwright_schema::{Problem, Validator, invalid_defaults, lint};

use super::{FieldCheck, check_json_text, field_path, provider_names};
use crate::diagnostic::{DiagnosticDraft, Location};
use crate::excerpt::{excerpt, value_excerpt};
use crate::formats::Formats;
use crate::shared::{Bundled, bundle};

pub(crate) const SCHEMA_FILE: &str = "schema.json";

pub(super) fn check_parameters(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    if check.object(value, pointer, "a JSON Schema object").is_none() {
        return;
    }
    check_root_type(check, value, pointer);
    if value.get("additionalProperties") != Some(&Value::Bool(false)) {
        let is_set = value.get("additionalProperties").is_some();
        let pointer = if is_set { "/parameters/additionalProperties" } else { pointer };
        let message =
            "`parameters.additionalProperties` must be false, or calls with unknown parameters pass";
        check
            .error("parameters-open", pointer, message)
            .at_key()
            .help("add `\"additionalProperties\": false`");
    }
    // A wrong root type is reported above: its consequences would only repeat it.
    let mut schema = Cow::Borrowed(value);
    if value.get("type") != Some(&Value::from("object")) {
        schema.to_mut()["type"] = Value::from("object");
    }
    if let Some(bundled) = check_json_schema(check, &schema, pointer) {
        match Validator::compile(&bundled) {
            Ok(validator) => check.validator = Some(validator),
            Err(error) => {
                let message = format!("`parameters` is not a JSON Schema: {error}");
                check.error("schema-invalid", pointer, message);
            }
        }
        if let Cow::Owned(bundled) = bundled {
            check.bundled_parameters = Some(bundled);
        }
    }
}

/// The arguments of a tool are always an object.
fn check_root_type(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    match value.get("type") {
        Some(kind) if kind == "object" => {}
        Some(kind) => {
            let message = format!("`parameters.type` must be `object`, got {}", value_excerpt(kind));
            check
                .error("parameters-not-object", "/parameters/type", message)
                .help("write `\"type\": \"object\"`");
        }
        None => {
            let message = "the required field `parameters.type` is missing";
            check
                .error("parameters-not-object", pointer, message)
                .at_key()
                .help("add `\"type\": \"object\"`");
        }
    }
}

pub(super) fn check_output(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    if check.object(value, pointer, "a JSON Schema object").is_some()
        && let Some(Cow::Owned(bundled)) = check_json_schema(check, value, pointer)
    {
        check.bundled_output = Some(bundled);
    }
}

/// The schema with shared definitions pulled in; `None` if it is not valid.
fn check_json_schema<'v>(
    check: &mut FieldCheck<'_>,
    value: &'v Value,
    pointer: &str,
) -> Option<Cow<'v, Value>> {
    let Bundled { schema: mut bundled, missing, keys } = bundle(value, check.shared);
    if !missing.is_empty() {
        for (below, message, help) in missing {
            let pointer = format!("{pointer}{below}");
            let message = format!("`{}`: {message}", field_path(&pointer));
            check.error("schema-shared-ref", pointer, message).help(help);
        }
        return None;
    }
    for (_, name) in &keys {
        check_shared_file(check, name);
    }
    let source = SchemaSource { root: pointer, shared: &keys };
    let before = check.diagnostics.len();
    for mut problem in lint(&bundled) {
        if problem.code == "schema-unknown-format" && !explain_format(check.formats, &bundled, &mut problem) {
            continue;
        }
        if problem.code == "schema-unresolved-ref" {
            explain_reference(&bundled, &mut problem);
        }
        // A message about a keyword names it, so the path is that of the schema around it.
        let path = match problem.part {
            Part::Key => problem.pointer.rsplit_once('/').map_or("", |(parent, _)| parent),
            Part::Value => problem.pointer.as_str(),
        };
        let message = format!("`{}`: {}", source.path(path), problem.message);
        let (file, pointer) = source.locate(&problem.pointer);
        let location = Location::Json { pointer, part: problem.part };
        let mut draft = DiagnosticDraft::error(problem.code, file, location, message);
        draft.help = problem.help;
        check.diagnostics.push(draft);
    }
    if check.diagnostics.len() == before {
        check.formats.expand_in(&mut bundled);
        check_defaults(check, &bundled, &source);
        let is_valid = check.diagnostics.len() == before;
        if pointer == "/parameters" {
            check_parameter_names(check, &bundled, &source);
        }
        return is_valid.then_some(bundled);
    }
    None
}

/// Whether a format that the schema crate does not know is unknown to the project, too. Adds how to define it.
fn explain_format(formats: &Formats, schema: &Value, problem: &mut Problem) -> bool {
    let name = schema.pointer(&problem.pointer).and_then(Value::as_str).unwrap_or_default();
    if formats.contains(name) {
        return false;
    }
    problem.help = match nearest(name, formats.names()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None => problem.help.take().or_else(|| {
            Some(format!("define it in toolwright.toml: `[formats]` and `{} = '<pattern>'`", excerpt(name)))
        }),
    };
    true
}

/// Says where definitions that several tools use belong. The schema crate knows no files.
fn explain_reference(schema: &Value, problem: &mut Problem) {
    let reference = schema.pointer(&problem.pointer).and_then(Value::as_str).unwrap_or("#");
    if !reference.starts_with('#') {
        let name =
            reference.split(['#', '?']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let name = if name.ends_with(".json") { excerpt(name) } else { "name.json".to_owned() };
        problem.help = Some(format!(
            "definitions that several tools use are files in `_shared`: write `../_shared/{name}`; others go into `$defs`"
        ));
    }
}

fn check_defaults(check: &mut FieldCheck<'_>, bundled: &Value, source: &SchemaSource<'_>) {
    for (pointer, reason) in invalid_defaults(bundled) {
        let pointer = child_pointer(&pointer, "default");
        let message = format!("`{}` does not match its own schema: {reason}", source.path(&pointer));
        let (file, pointer) = source.locate(&pointer);
        let draft = DiagnosticDraft::json("default-refused", file, pointer, message);
        check.diagnostics.push(draft.with_help("change the default or the schema"));
    }
}

fn check_parameter_names(check: &mut FieldCheck<'_>, bundled: &Value, source: &SchemaSource<'_>) {
    for (pointer, name) in provider_names::rejected_parameters(bundled) {
        let (file, pointer) = source.locate(&pointer);
        let message = format!("some model providers reject `{}` as the name of a parameter", excerpt(&name));
        let draft = DiagnosticDraft::json("parameters-name-refused", file, pointer, message);
        check.diagnostics.push_mut(draft).at_key().help(provider_names::HELP).warning();
    }
}

/// A shared file follows the same rules as `schema.json`. Each tool that uses it reports it; the build drops
/// duplicates.
fn check_shared_file(check: &mut FieldCheck<'_>, name: &str) {
    let Some((text, parsed)) = check.shared.text(name).zip(check.shared.parsed(name)) else { return };
    let file = format!("../_shared/{name}");
    report_duplicate_keys(&file, &parsed.duplicate_keys, &mut check.diagnostics);
    check_json_text(&file, &parsed.value, text, &mut check.diagnostics);
}

/// Reports every key that repeats an earlier one of its object.
pub(crate) fn report_duplicate_keys(
    file: &str,
    keys: &[(Range<usize>, String)],
    diagnostics: &mut Vec<DiagnosticDraft>,
) {
    for (span, key) in keys {
        let message = format!("the key `{}` is repeated in one object", excerpt(key));
        let location = Location::Span(span.clone());
        let draft = DiagnosticDraft::error("json-duplicate-key", file.to_owned(), location, message);
        diagnostics.push(draft.with_help("remove one of them: readers disagree on which one counts"));
    }
}

/// Where the parts of a bundled schema come from.
struct SchemaSource<'a> {
    /// The pointer of the schema in `schema.json`.
    root: &'a str,
    /// The keys of `$defs` that shared files were pulled in under, and their file names.
    shared: &'a [(String, String)],
}

impl SchemaSource<'_> {
    /// The file that a pointer into the bundled schema belongs to, and the pointer in that file.
    fn locate(&self, pointer: &str) -> (Cow<'static, str>, String) {
        for (key, name) in self.shared {
            let below = pointer.strip_prefix("/$defs/").and_then(|below| below.strip_prefix(key.as_str()));
            if let Some(below) = below.filter(|below| below.is_empty() || below.starts_with('/')) {
                return (Cow::Owned(format!("../_shared/{name}")), below.to_owned());
            }
        }
        (Cow::Borrowed(SCHEMA_FILE), format!("{}{pointer}", self.root))
    }

    /// How messages name the place.
    fn path(&self, pointer: &str) -> String {
        match self.locate(pointer) {
            (Cow::Borrowed(_), pointer) => field_path(&pointer),
            (Cow::Owned(file), pointer) if pointer.is_empty() => file,
            (Cow::Owned(file), pointer) => format!("{file}: {}", field_path(&pointer)),
        }
    }
}
