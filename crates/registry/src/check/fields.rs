//! The fields of `schema.json`: a row a field, each with the function that checks its value.

use semver::Version;
use serde_json::{Map, Value};
use toolwright_contract::{Category, Execution, Mode, SideEffects};

use super::schema_file::Schema;
use super::{expression, names};
use toolwright_contract::suggest::{did_you_mean, list};
use toolwright_schema::pointer::child_pointer;

/// One field. The order of [`FIELDS`] is the order in the artifact.
pub(super) struct Field {
    pub name: &'static str,
    required: bool,
    check: fn(&mut Schema<'_>, &Value),
}

const fn required(name: &'static str, check: fn(&mut Schema<'_>, &Value)) -> Field {
    Field { name, required: true, check }
}

const fn optional(name: &'static str, check: fn(&mut Schema<'_>, &Value)) -> Field {
    Field { name, required: false, check }
}

pub(super) const FIELDS: &[Field] = &[
    required("toolId", tool_id),
    required("version", version),
    required("description", description),
    required("category", |schema, value| one_of(schema, value, "/category", Category::WORDS)),
    required("sideEffects", |schema, value| one_of(schema, value, "/sideEffects", SideEffects::WORDS)),
    required("idempotent", idempotent),
    required("requiresConfirmation", expression::confirmation),
    required("allowedModes", allowed_modes),
    required("latencyBudgetMs", |schema, value| positive(schema, value, "/latencyBudgetMs")),
    optional("timeoutMs", |schema, value| positive(schema, value, "/timeoutMs")),
    optional("execution", |schema, value| one_of(schema, value, "/execution", Execution::WORDS)),
    optional("availability", expression::availability),
    optional("permissions", permissions),
    optional("clamp", clamp),
    optional("tags", |schema, value| unique_strings(schema, value, "/tags", "a tag")),
    required("parameters", super::parameters::check_parameters),
    optional("output", super::parameters::check_output),
];

/// Checks every field of `members` that is there, and that every required one is.
pub(super) fn check_fields(schema: &mut Schema<'_>, members: &Map<String, Value>) {
    unknown_fields(schema, members, "", &FIELDS.iter().map(|field| field.name).collect::<Vec<_>>());
    for field in FIELDS {
        match members.get(field.name) {
            Some(value) => (field.check)(schema, value),
            None if field.required => {
                schema.error("field-missing", "", format!("the required field `{}` is missing", field.name));
            }
            None => {}
        }
    }
}

/// Reports the members of the object at `pointer` that are not in `known`.
pub(super) fn unknown_fields(
    schema: &mut Schema<'_>,
    members: &Map<String, Value>,
    pointer: &str,
    known: &[&str],
) {
    for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
        schema
            .error("field-unknown", child_pointer(pointer, name), format!("unknown field `{name}`"))
            .at_key()
            .help(did_you_mean(name, known));
    }
}

/// The text of a string value that is not blank; anything else is reported.
pub(super) fn text<'v>(schema: &mut Schema<'_>, value: &'v Value, pointer: &str) -> Option<&'v str> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Some(text),
        Some(_) => {
            schema.error("field-value", pointer, "must not be empty");
            None
        }
        None => {
            wrong_type(schema, value, pointer, "a string");
            None
        }
    }
}

pub(super) fn wrong_type(schema: &mut Schema<'_>, value: &Value, pointer: &str, expected: &str) {
    schema.error("field-type", pointer, format!("must be {expected}, not {}", kind(value)));
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn tool_id(schema: &mut Schema<'_>, value: &Value) {
    let Some(id) = text(schema, value, "/toolId") else { return };
    let expected = schema.directory.replace('-', "_");
    let snake = id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !snake {
        schema
            .error("tool-id-form", "/toolId", format!("`{id}` is not snake_case"))
            .help(format!("write `{expected}`: lower-case letters, digits and `_`, beginning with a letter"));
    } else if id != expected {
        schema
            .error(
                "tool-id-mismatch",
                "/toolId",
                format!("`{id}` does not fit the directory `{}`", schema.directory),
            )
            .help(format!("write `{expected}`, or name the directory `{}`", id.replace('_', "-")));
    } else if id.len() > names::LONGEST {
        let message = format!("some model providers refuse names of more than {} characters", names::LONGEST);
        schema.error("tool-id-refused", "/toolId", message).help(names::HELP).warning();
    }
}

fn version(schema: &mut Schema<'_>, value: &Value) {
    let Some(version) = text(schema, value, "/version") else { return };
    if let Err(error) = Version::parse(version) {
        schema
            .error("field-value", "/version", format!("`{version}` is not a semantic version: {error}"))
            .help("write major.minor.patch, such as `1.0.0`");
    }
}

fn description(schema: &mut Schema<'_>, value: &Value) {
    text(schema, value, "/description");
}

fn idempotent(schema: &mut Schema<'_>, value: &Value) {
    if !value.is_boolean() {
        wrong_type(schema, value, "/idempotent", "true or false");
    }
}

fn one_of(schema: &mut Schema<'_>, value: &Value, pointer: &str, words: &[&str]) {
    match value.as_str() {
        Some(word) if words.contains(&word) => {}
        Some(word) => {
            let help = did_you_mean(word, words);
            schema
                .error("field-value", pointer, format!("`{word}` is not one of {}", list(words)))
                .help(help);
        }
        None => wrong_type(schema, value, pointer, &format!("one of {}", list(words))),
    }
}

fn allowed_modes(schema: &mut Schema<'_>, value: &Value) {
    let Some(modes) = value.as_array() else {
        return wrong_type(schema, value, "/allowedModes", "an array of `text` and `voice`");
    };
    if modes.is_empty() {
        schema
            .error("field-value", "/allowedModes", "must name at least one mode")
            .help("`text`, `voice` or both");
    }
    for (index, mode) in modes.iter().enumerate() {
        let pointer = format!("/allowedModes/{index}");
        one_of(schema, mode, &pointer, Mode::WORDS);
        if modes[..index].contains(mode) {
            schema.error("field-value", pointer, "is listed twice").help("each mode once");
        }
    }
}

pub(super) fn positive(schema: &mut Schema<'_>, value: &Value, pointer: &str) {
    match value.as_f64() {
        Some(number) if number > 0.0 => {}
        Some(_) => {
            schema.error("field-value", pointer, "must be greater than 0");
        }
        None => wrong_type(schema, value, pointer, "a number greater than 0"),
    }
}

fn positive_integer(schema: &mut Schema<'_>, value: &Value, pointer: &str) {
    if value.as_u64().is_none_or(|number| number == 0) {
        schema.error("field-value", pointer, "must be a whole number greater than 0");
    }
}

fn permissions(schema: &mut Schema<'_>, value: &Value) {
    let Some(members) = value.as_object() else {
        return wrong_type(schema, value, "/permissions", "an object");
    };
    unknown_fields(schema, members, "/permissions", &["rateLimit", "roles"]);
    if let Some(roles) = members.get("roles") {
        unique_strings(schema, roles, "/permissions/roles", "a role");
    }
    let Some(limit) = members.get("rateLimit") else { return };
    let at = "/permissions/rateLimit";
    let Some(limit) = limit.as_object() else {
        return wrong_type(schema, limit, at, "an object with `calls` and `window`");
    };
    unknown_fields(schema, limit, at, &["calls", "window"]);
    for name in ["calls", "window"] {
        match limit.get(name) {
            Some(number) => positive_integer(schema, number, &child_pointer(at, name)),
            None => {
                schema
                    .error("field-missing", at, format!("the required field `{name}` is missing"))
                    .help("at most `calls` within `window` milliseconds");
            }
        }
    }
}

fn unique_strings(schema: &mut Schema<'_>, value: &Value, pointer: &str, what: &str) {
    let Some(items) = value.as_array() else {
        return wrong_type(schema, value, pointer, "an array of strings");
    };
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        if text(schema, item, &pointer).is_some() && items[..index].contains(item) {
            schema.error("field-value", pointer, format!("{what} is listed twice"));
        }
    }
}

fn clamp(schema: &mut Schema<'_>, value: &Value) {
    let Some(modes) = value.as_object() else {
        return wrong_type(schema, value, "/clamp", "an object with `text` or `voice`");
    };
    unknown_fields(schema, modes, "/clamp", Mode::WORDS);
    for (mode, limits) in modes.iter().filter(|(mode, _)| Mode::from_word(mode).is_some()) {
        let at = child_pointer("/clamp", mode);
        let Some(limits) = limits.as_object() else {
            wrong_type(schema, limits, &at, "an object: parameter to maximum");
            continue;
        };
        for (name, maximum) in limits {
            clamp_one(schema, &child_pointer(&at, name), name, maximum);
        }
    }
}

fn clamp_one(schema: &mut Schema<'_>, pointer: &str, name: &str, maximum: &Value) {
    if !maximum.is_number() {
        wrong_type(schema, maximum, pointer, "a number");
    }
    let properties = schema.parameter_names();
    match properties.get(name).and_then(|property| property.get("type")).and_then(Value::as_str) {
        Some("number" | "integer") => {}
        _ if properties.contains_key(name) => {
            schema.error("clamp-target", pointer, format!("the parameter `{name}` is not a number")).at_key();
        }
        _ => {
            let names: Vec<&str> = properties.keys().map(String::as_str).collect();
            schema
                .error("clamp-target", pointer, format!("there is no parameter `{name}` to clamp"))
                .at_key()
                .help(did_you_mean(name, &names));
        }
    }
}
