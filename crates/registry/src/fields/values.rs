//! Checks of single values: their type, and whether the value is allowed.

use semver::Version;
use serde_json::{Map, Value};
use toolwright_contract::Mode;
use toolwright_contract::suggest::{did_you_mean, list};
use toolwright_schema::pointer::child_pointer;

use super::{FieldCheck, field_path, provider_names};
use crate::check::WARNINGS;
use crate::excerpt::{excerpt, value_excerpt};

impl FieldCheck<'_> {
    /// The text of a string that is not blank; anything else is reported.
    pub(crate) fn text<'v>(&mut self, value: &'v Value, pointer: &str) -> Option<&'v str> {
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => return Some(text),
            Some(_) => {
                let message = format!("`{}` must not be empty", field_path(pointer));
                self.error("field-value", pointer, message).help("write at least one word");
            }
            None => self.wrong_type(value, pointer, "a string"),
        }
        None
    }

    /// The members of an object; anything else is reported.
    pub(crate) fn object<'v>(
        &mut self,
        value: &'v Value,
        pointer: &str,
        expected: &str,
    ) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.wrong_type(value, pointer, expected);
        }
        value.as_object()
    }

    /// Reports a value that is not one of `words`.
    pub(crate) fn one_of(&mut self, value: &Value, pointer: &str, words: &[&str]) {
        let Some(word) = value.as_str() else {
            return self.wrong_type(value, pointer, &format!("one of {}", list(words)));
        };
        if !words.contains(&word) {
            let path = field_path(pointer);
            let message = format!("`{path}` must be one of {}, got `{}`", list(words), excerpt(word));
            self.error("field-value", pointer, message).help(did_you_mean(word, words));
        }
    }

    /// Reports a value whose type is not the expected one.
    pub(crate) fn wrong_type(&mut self, value: &Value, pointer: &str, expected: &str) {
        let message = format!("`{}` must be {expected}, got {}", field_path(pointer), value_excerpt(value));
        self.error("field-type", pointer, message).help(format!("write {expected}"));
    }
}

impl<'a> FieldCheck<'a> {
    /// The properties of `parameters`, valid or not.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let properties = self.members.get("parameters").and_then(|parameters| parameters.get("properties"));
        let properties = properties.and_then(Value::as_object).into_iter().flatten();
        properties.map(|(name, schema)| (name.as_str(), schema))
    }
}

pub(super) fn tool_id(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(id) = check.text(value, pointer) else { return };
    let expected = check.directory.replace('-', "_");
    let is_snake_case = id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_snake_case {
        check
            .error("tool-id-form", pointer, format!("`toolId` must be snake_case, got `{}`", excerpt(id)))
            .help(format!("write `{expected}`: lower-case letters, digits and `_`, beginning with a letter"));
    } else if id != expected {
        let message = format!("`toolId` is `{}`, but the directory is `{}`", excerpt(id), check.directory);
        check
            .error("tool-id-mismatch", pointer, message)
            .help(format!("write `{expected}`, or name the directory `{}`", excerpt(&id.replace('_', "-"))));
    } else if id.len() > provider_names::MAX_NAME_BYTES {
        let message = format!(
            "`toolId` has {} characters; some model providers reject more than {}",
            id.len(),
            provider_names::MAX_NAME_BYTES
        );
        check.error("tool-id-refused", pointer, message).help(provider_names::HELP).warning();
    }
}

pub(super) fn not_blank(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    check.text(value, pointer);
}

pub(super) fn version(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(version) = check.text(value, pointer) else { return };
    if let Err(error) = Version::parse(version) {
        let message = format!("`version` must be a semantic version, got `{}`: {error}", excerpt(version));
        check.error("field-value", pointer, message).help("write major.minor.patch, such as `1.0.0`");
    }
}

pub(super) fn boolean(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    if !value.is_boolean() {
        check.wrong_type(value, pointer, "true or false");
    }
}

pub(super) fn allowed_modes(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(modes) = value.as_array() else {
        return check.wrong_type(value, pointer, "an array of `text` and `voice`");
    };
    if modes.is_empty() {
        check
            .error("field-value", pointer, "`allowedModes` must name at least one mode, got an empty array")
            .help("write `text`, `voice` or both");
    }
    for (index, mode) in modes.iter().enumerate() {
        check.one_of(mode, &format!("{pointer}/{index}"), Mode::WORDS);
        check_unique(check, modes, index, pointer);
    }
}

pub(super) fn unique_strings(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(items) = value.as_array() else {
        return check.wrong_type(value, pointer, "an array of strings");
    };
    for (index, item) in items.iter().enumerate() {
        if check.text(item, &format!("{pointer}/{index}")).is_some() {
            check_unique(check, items, index, pointer);
        }
    }
}

/// The warnings that the author has acknowledged.
pub(super) fn allow(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    unique_strings(check, value, pointer);
    for (index, name) in value.as_array().into_iter().flatten().enumerate() {
        let Some(name) = name.as_str().filter(|name| !name.trim().is_empty() && !WARNINGS.contains(name))
        else {
            continue;
        };
        let message = format!("`allow` names `{}`, which is not the code of a warning", excerpt(name));
        check
            .error("allow-unknown", format!("{pointer}/{index}"), message)
            .help(did_you_mean(name, WARNINGS));
    }
}

/// Reports an item that repeats an earlier one of the array at `pointer`.
fn check_unique(check: &mut FieldCheck<'_>, items: &[Value], index: usize, pointer: &str) {
    if items[..index].contains(&items[index]) {
        let message = format!("`{}` lists {} twice", field_path(pointer), value_excerpt(&items[index]));
        check.error("field-value", format!("{pointer}/{index}"), message).help("list each once");
    }
}

pub(super) fn positive(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    match value.as_f64() {
        Some(number) if number > 0.0 => {}
        Some(_) => {
            let message = format!("`{}` must be greater than 0, got {value}", field_path(pointer));
            check.error("field-value", pointer, message).help("write a number of milliseconds");
        }
        None => check.wrong_type(value, pointer, "a number of milliseconds greater than 0"),
    }
}

pub(super) fn permissions(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(members) = check.object(value, pointer, "an object with `requiresAuth`, `roles` or `rateLimit`")
    else {
        return;
    };
    check.unknown_fields(members, pointer, &["requiresAuth", "roles", "rateLimit"]);
    if let Some(requires_auth) = members.get("requiresAuth") {
        boolean(check, requires_auth, &format!("{pointer}/requiresAuth"));
    }
    if let Some(roles) = members.get("roles") {
        unique_strings(check, roles, &format!("{pointer}/roles"));
    }
    if let Some(limit) = members.get("rateLimit") {
        rate_limit(check, limit, &format!("{pointer}/rateLimit"));
    }
}

fn rate_limit(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    const HELP: &str = "at most `calls` calls are allowed within `window` milliseconds";
    let Some(limit) = check.object(value, pointer, "an object with `calls` and `window`") else { return };
    check.unknown_fields(limit, pointer, &["calls", "window"]);
    for name in ["calls", "window"] {
        match limit.get(name) {
            Some(number) if number.as_u64().is_none_or(|number| number == 0) => {
                let pointer = format!("{pointer}/{name}");
                let (path, got) = (field_path(&pointer), value_excerpt(number));
                let message = format!("`{path}` must be a whole number greater than 0, got {got}");
                check.error("field-value", pointer, message).help(HELP);
            }
            Some(_) => {}
            None => check.missing(pointer, name, HELP),
        }
    }
}

pub(super) fn clamp(check: &mut FieldCheck<'_>, value: &Value, pointer: &str) {
    let Some(modes) = check.object(value, pointer, "an object with `text` or `voice`") else { return };
    check.unknown_fields(modes, pointer, Mode::WORDS);
    for (mode, limits) in modes.iter().filter(|(mode, _)| Mode::from_word(mode).is_some()) {
        let pointer = child_pointer(pointer, mode);
        let limits = check.object(limits, &pointer, "an object of parameter names and maximums");
        for (name, maximum) in limits.into_iter().flatten() {
            clamp_parameter(check, &child_pointer(&pointer, name), name, maximum);
        }
    }
}

fn clamp_parameter(check: &mut FieldCheck<'_>, pointer: &str, name: &str, maximum: &Value) {
    if !maximum.is_number() {
        check.wrong_type(maximum, pointer, "a number");
    }
    let path = field_path(pointer);
    let schema = check.parameters().find(|(known, _)| *known == name).map(|(_, schema)| schema);
    match schema.map(|schema| schema.get("type").and_then(Value::as_str)) {
        Some(Some("number" | "integer")) => check_clamp_minimum(check, pointer, name, maximum),
        Some(_) => {
            let message = format!("`{path}` limits the parameter `{name}`, which is not a number");
            check.error("clamp-target", pointer, message).at_key();
        }
        None => {
            let known: Vec<&str> = check.parameters().map(|(name, _)| name).collect();
            let help = did_you_mean(name, &known);
            let message = format!("`{path}` limits a parameter that `parameters` does not have");
            check.error("clamp-target", pointer, message).at_key().help(help);
        }
    }
}

/// A clamp below the parameter's minimum would make every call invalid.
fn check_clamp_minimum(check: &mut FieldCheck<'_>, pointer: &str, name: &str, maximum: &Value) {
    let schema = check.parameters().find(|(known, _)| *known == name).map(|(_, schema)| schema);
    let bound = |keyword: &str| schema.and_then(|schema| schema.get(keyword)).and_then(Value::as_f64);
    let Some(limit) = maximum.as_f64() else { return };
    let below = |keyword: &'static str, is_below: fn(f64, f64) -> bool| {
        bound(keyword).filter(|bound| is_below(limit, *bound)).map(|bound| (keyword, bound))
    };
    let found = below("minimum", |limit, bound| limit < bound)
        .or_else(|| below("exclusiveMinimum", |limit, bound| limit <= bound));
    if let Some((keyword, bound)) = found {
        let message = format!(
            "`{}` is {limit}, which the parameter `{name}` cannot have: its `{keyword}` is {bound}",
            field_path(pointer)
        );
        let help = format!("raise the clamp, or lower `{keyword}` of `{name}`");
        check.error("clamp-target", pointer, message).help(help);
    }
}
