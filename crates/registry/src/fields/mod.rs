//! The fields of a tool: one row per field, for `schema.json` and for declared tools.
//!
//! To add a field, add a row to [`FIELDS`] and its type to `ToolSpec` in the contract.

mod conditions;
mod hidden_text;
mod parameters;
mod provider_names;
mod rules;
mod values;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use toolwright_contract::suggest::did_you_mean;
use toolwright_contract::{Category, ExecutionMode, Mode, SideEffects};
use toolwright_schema::Validator;
use toolwright_schema::pointer::child_pointer;

use crate::declared;
use crate::diagnostic::DiagnosticDraft;
use crate::excerpt::excerpt;
use crate::formats::Formats;
use crate::shared::Shared;

pub(crate) use hidden_text::{check_json_text, check_text, check_value};
pub(crate) use parameters::{SCHEMA_FILE, report_duplicate_keys};

/// Checks a value at a pointer and reports what is wrong with it.
type Check = fn(&mut FieldCheck<'_>, &Value, &str);

/// One field of a tool.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    /// In `schema.json`. A declared tool must set it too if it has no default there.
    is_required: bool,
    check: Check,
    /// How a declared tool sets the field; `None`: only `schema.json` can.
    declared: Option<DeclaredField>,
}

/// A field as declared tools set it.
#[derive(Debug)]
struct DeclaredField {
    check: Check,
    /// The value of a tool that leaves the field out.
    default: fn(Defaults) -> Option<Value>,
}

/// The properties of a declared tool that its defaults depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub is_mock: bool,
    pub is_retrieval: bool,
}

/// All fields, in the order of the artifact. Declared tools get careful defaults: a handler that does not state
/// what it does is assumed to write.
#[rustfmt::skip] // a table
pub(crate) const FIELDS: &[Field] = &[
    required("toolId", values::tool_id),
    required("version", values::version).declared(|_| Some("1.0.0".into())),
    required("description", values::not_blank).declared(|_| None),
    required("category", |check, value, at| check.one_of(value, at, Category::WORDS))
        .declared(|_| Some("utility".into())),
    required("sideEffects", |check, value, at| check.one_of(value, at, SideEffects::WORDS))
        .declared(|tool| Some(side_effects(tool).as_str().into())),
    required("idempotent", values::boolean).declared(|tool| Some((tool.is_mock || tool.is_retrieval).into())),
    required("requiresConfirmation", conditions::confirmation)
        .declared_as(values::boolean, |_| Some(false.into())),
    required("allowedModes", values::allowed_modes).declared(|_| Some(json!(Mode::WORDS))),
    required("latencyBudgetMs", values::positive).declared(|_| Some(1000.into())),
    optional("timeoutMs", values::positive).declared(|_| None),
    optional("execution", |check, value, at| check.one_of(value, at, ExecutionMode::WORDS)),
    optional("availability", conditions::availability),
    optional("permissions", values::permissions),
    optional("clamp", values::clamp),
    optional("tags", values::unique_strings).declared(|_| None),
    optional("allow", values::allow),
    required("parameters", parameters::check_parameters).declared_as(declared::check_parameters, |_| None),
    optional("output", parameters::check_output),
];

const fn required(name: &'static str, check: Check) -> Field {
    Field { name, is_required: true, check, declared: None }
}

const fn optional(name: &'static str, check: Check) -> Field {
    Field { name, is_required: false, check, declared: None }
}

fn side_effects(tool: Defaults) -> SideEffects {
    match tool {
        Defaults { is_mock: true, .. } => SideEffects::None,
        Defaults { is_retrieval: true, .. } => SideEffects::ReadOnly,
        _ => SideEffects::Writes,
    }
}

impl Field {
    /// Declared tools can set the field too, under the same rules.
    const fn declared(self, default: fn(Defaults) -> Option<Value>) -> Self {
        let check = self.check;
        self.declared_as(check, default)
    }

    /// Declared tools can set the field too, under other rules.
    const fn declared_as(mut self, check: Check, default: fn(Defaults) -> Option<Value>) -> Self {
        self.declared = Some(DeclaredField { check, default });
        self
    }

    /// The member of the artifact, and of `ToolSpec`, that holds the field.
    pub fn artifact_name(&self) -> &'static str {
        if self.name == "parameters" { "jsonSchema" } else { self.name }
    }
}

/// The names of the fields that a declared tool can set.
pub(crate) fn declared_names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().filter(|field| field.declared.is_some()).map(|field| field.name)
}

/// The members of a declared tool's `ToolSpec`, defaults filled in. Its id is the caller's.
pub(crate) fn declared_spec(members: &Map<String, Value>, is_mock: bool) -> Map<String, Value> {
    let is_retrieval = members.get("category").is_some_and(|category| category == "retrieval");
    let value = |field: &Field| {
        let default = field.declared.as_ref()?.default;
        let value = members.get(field.name).cloned();
        let value = value.or_else(|| default(Defaults { is_mock, is_retrieval }))?;
        Some((field.artifact_name().to_owned(), value))
    };
    FIELDS.iter().filter_map(value).collect()
}

static NO_FORMATS: LazyLock<Formats> = LazyLock::new(Formats::default);

/// Checks the fields of one tool. Every problem is collected; none stops the check.
pub(crate) struct FieldCheck<'a> {
    /// The name of the tool's directory; empty for a declared tool.
    pub directory: &'a str,
    pub members: &'a Map<String, Value>,
    pub shared: &'a Shared,
    pub formats: &'a Formats,
    pub diagnostics: Vec<DiagnosticDraft>,
    /// `parameters` and `output` with shared definitions pulled in, if that changed them.
    pub bundled_parameters: Option<Value>,
    pub bundled_output: Option<Value>,
    /// Compiled from `parameters`; `None` if they are not a valid schema.
    pub validator: Option<Validator>,
}

impl<'a> FieldCheck<'a> {
    pub fn new(directory: &'a str, members: &'a Map<String, Value>, shared: &'a Shared) -> Self {
        let diagnostics = Vec::new();
        let (bundled_parameters, bundled_output, validator) = (None, None, None);
        let formats = &NO_FORMATS;
        Self {
            directory,
            members,
            shared,
            formats,
            diagnostics,
            bundled_parameters,
            bundled_output,
            validator,
        }
    }

    /// Checks all fields of a `schema.json`, and the rules between them.
    pub fn check_schema_file(&mut self) {
        let members = self.members;
        self.unknown_fields(members, "", &FIELDS.iter().map(|field| field.name).collect::<Vec<_>>());
        for field in FIELDS {
            match members.get(field.name) {
                Some(value) => (field.check)(self, value, &format!("/{}", field.name)),
                None if field.is_required => self.missing("", field.name, format!("add `{}`", field.name)),
                None => {}
            }
        }
        rules::check_schema_file(self, members);
    }

    /// Checks the fields that a declared tool has in common with `schema.json`.
    pub fn check_declared(&mut self, is_mock: bool) {
        let members = self.members;
        for field in FIELDS {
            let Some(DeclaredField { check, default }) = &field.declared else { continue };
            match members.get(field.name) {
                Some(value) => check(self, value, &format!("/{}", field.name)),
                None if field.is_required && default(Defaults { is_mock, is_retrieval: false }).is_none() => {
                    self.missing("", field.name, format!("add `{}`", field.name));
                }
                None => {}
            }
        }
        rules::check_retrieval(self, &declared_spec(members, is_mock));
    }

    /// Reports an error at a value.
    pub fn error(
        &mut self,
        code: &'static str,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut DiagnosticDraft {
        self.diagnostics.push_mut(DiagnosticDraft::json(code, SCHEMA_FILE, pointer, message))
    }

    /// Reports a required member of the object at `pointer` that is not there.
    pub fn missing(&mut self, pointer: &str, name: &str, help: impl Into<String>) {
        let path = field_path(&format!("{pointer}/{name}"));
        self.error("field-missing", pointer, format!("the required field `{path}` is missing")).help(help);
    }

    /// Reports the members of the object at `pointer` that are not in `known`.
    pub fn unknown_fields(&mut self, members: &Map<String, Value>, pointer: &str, known: &[&str]) {
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            let pointer = child_pointer(pointer, name);
            let message = format!("unknown field `{}`", field_path(&pointer));
            self.error("field-unknown", pointer, message).at_key().help(did_you_mean(name, known));
        }
    }
}

/// A pointer as messages name it: `/permissions/roles/0` is `permissions.roles[0]`.
pub(crate) fn field_path(pointer: &str) -> String {
    let mut path = String::new();
    for segment in pointer.split('/').skip(1) {
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{segment}]"));
            continue;
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&segment.replace("~1", "/").replace("~0", "~"));
    }
    excerpt(&path)
}

#[cfg(test)]
mod fields_tests;
