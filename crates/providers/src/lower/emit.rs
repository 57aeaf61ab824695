//! Writes a merged schema in the provider's dialect, keyword by keyword.

use serde_json::{Map, Value, json};

use super::Lowering;
use super::keyword::{Subschemas, append_notes, describe_keyword, is_annotation, is_valid, subschemas};
use super::merge::MergedSchema;
use super::path::Step;
use crate::LossKind;
use crate::provider::object;

/// A schema that is being written.
pub(super) struct SchemaDraft<'s, 'a> {
    source: &'s MergedSchema<'a>,
    pub members: Map<String, Value>,
    /// Constraints that are described in words.
    pub notes: Vec<String>,
}

impl<'a> Lowering<'a, '_> {
    /// The schema, with the notes in its description.
    pub(super) fn emit(&mut self, schema: &MergedSchema<'a>) -> Value {
        if schema.is_never && self.dialect.keywords.is_none() {
            return json!({ "not": {} });
        }
        let SchemaDraft { mut members, notes, .. } = self.draft(schema);
        if !notes.is_empty() {
            let description = append_notes(members.get("description").and_then(Value::as_str), &notes);
            members.insert("description".to_owned(), description.into());
        }
        if self.dialect.is_native { self.native(members) } else { Value::Object(members) }
    }

    pub(super) fn draft<'s>(&mut self, schema: &'s MergedSchema<'a>) -> SchemaDraft<'s, 'a> {
        let mut draft = SchemaDraft { source: schema, members: Map::new(), notes: Vec::new() };
        if schema.is_never {
            self.describe(&mut draft.notes, "not", Some("not allowed".to_owned()));
        }
        for (keyword, value) in &schema.keywords {
            self.keyword(&mut draft, keyword, value);
        }
        self.properties(&mut draft);
        self.items(&mut draft);
        if self.dialect.is_explicit && !self.dialect.is_native {
            make_explicit(&mut draft.members);
        }
        draft
    }

    fn keyword(&mut self, draft: &mut SchemaDraft<'_, 'a>, keyword: &'a str, value: &'a Value) {
        let is_supported = self.supports(keyword) && is_valid(keyword, value);
        match keyword {
            "properties" => drop(draft.members.insert("properties".to_owned(), Value::Null)),
            "$defs" | "definitions" if self.dialect.inlines_references => {}
            "anyOf" | "oneOf" => self.union(draft, keyword, value),
            "enum" | "const" if self.dialect.keywords.is_some() => self.enum_values(draft, keyword, value),
            "format" if is_supported && !self.supports_format(value) => {
                self.describe(&mut draft.notes, keyword, describe_keyword(keyword, value));
            }
            "exclusiveMinimum" | "exclusiveMaximum" if !is_supported => {
                self.exclusive_limit(draft, keyword, value)
            }
            "nullable" if !is_supported => nullable(draft, value),
            _ if is_supported => self.copy_keyword(draft, keyword, value),
            _ => self.unsupported_keyword(draft, keyword, value),
        }
    }

    fn supports_format(&self, format: &Value) -> bool {
        self.dialect.formats.is_none_or(|formats| format.as_str().is_some_and(|name| formats.contains(&name)))
    }

    /// Copies a supported keyword.
    fn copy_keyword(&mut self, draft: &mut SchemaDraft<'_, 'a>, keyword: &'a str, value: &'a Value) {
        let written = match (subschemas(keyword), value) {
            (Subschemas::One, Value::Object(_)) => {
                self.at_step(Step::Keyword(keyword), |lowering| lowering.lower_schema(&[value], None))
            }
            (Subschemas::List, Value::Array(branches)) if !branches.is_empty() => {
                Value::Array(self.branches(keyword, branches.iter(), None))
            }
            (Subschemas::ByName, Value::Object(entries)) => {
                let entry = |(name, schema): (&'a String, &'a Value)| {
                    let step = Step::Entry(keyword, name);
                    (name.clone(), self.at_step(step, |lowering| lowering.lower_schema(&[schema], None)))
                };
                Value::Object(entries.iter().map(entry).collect())
            }
            (Subschemas::None, _) | (Subschemas::One, Value::Bool(_)) => value.clone(),
            _ => return,
        };
        draft.members.insert(keyword.to_owned(), written);
    }

    fn branches(
        &mut self,
        keyword: &'a str,
        branches: impl Iterator<Item = &'a Value>,
        inherited: Option<&'a Value>,
    ) -> Vec<Value> {
        let lowered = |(at, branch): (usize, &'a Value)| {
            self.at_step(Step::Branch(keyword, at), |lowering| lowering.lower_schema(&[branch], inherited))
        };
        branches.enumerate().map(lowered).collect()
    }

    /// Handles a keyword that the provider does not support.
    fn unsupported_keyword(&mut self, draft: &mut SchemaDraft<'_, 'a>, keyword: &str, value: &Value) {
        let is_empty =
            value.as_object().is_some_and(Map::is_empty) || value == false && keyword == "uniqueItems";
        match (keyword, value) {
            ("title", Value::String(title)) if !draft.members.contains_key("description") => {
                draft.members.insert("description".to_owned(), title.as_str().into());
            }
            ("additionalProperties" | "unevaluatedProperties", Value::Bool(is_open)) => {
                if !is_open {
                    self.report_loss(keyword, LossKind::Dropped, "calls with other members are rejected");
                }
            }
            _ if is_annotation(keyword) || is_empty => {}
            _ if !is_valid(keyword, value) => {
                self.report_loss(keyword, LossKind::Dropped, "its value is not valid")
            }
            _ => self.describe(&mut draft.notes, keyword, describe_keyword(keyword, value)),
        }
    }

    /// Adds the description of a constraint to the notes. `None` if it is too long.
    pub(super) fn describe(&mut self, notes: &mut Vec<String>, keyword: &str, text: Option<String>) {
        match text {
            Some(text) => {
                self.report_loss(keyword, LossKind::Described, text.clone());
                notes.push(text);
            }
            None => self.report_loss(keyword, LossKind::Dropped, "too long for a description"),
        }
    }

    fn union(&mut self, draft: &mut SchemaDraft<'_, 'a>, keyword: &'a str, value: &'a Value) {
        let schema = draft.source;
        let Some(branches) = value.as_array().filter(|branches| !branches.is_empty()) else { return };
        // In the native dialect a union has no keywords beside it.
        let has_other_keywords =
            !schema.properties.is_empty() || !schema.items.is_empty() || schema.get("enum").is_some();
        let target = match keyword {
            _ if self.dialect.is_native && has_other_keywords => None,
            supported if self.supports(supported) => Some(supported),
            "oneOf" if schema.get("anyOf").is_none() => Some("anyOf"),
            _ => None,
        };
        let Some(target) = target else {
            return self.describe(&mut draft.notes, keyword, alternatives(keyword, branches));
        };
        let inherited = schema.get("type").filter(|_| self.dialect.is_native);
        let lowered = self.branches(keyword, branches.iter(), inherited);
        if target != keyword {
            self.report_loss(keyword, LossKind::Rewritten, "`anyOf`: more than one may match");
        }
        draft.members.insert(target.to_owned(), lowered.into());
    }

    /// `enum` and `const`, if only some values are supported.
    fn enum_values(&mut self, draft: &mut SchemaDraft<'_, 'a>, keyword: &str, value: &'a Value) {
        let values = match value {
            _ if keyword == "const" => std::slice::from_ref(value),
            Value::Array(values) => values,
            _ => &[],
        };
        let (listed, others): (Vec<&Value>, Vec<&Value>) =
            values.iter().partition(|value| (self.dialect.accepts_enum_value)(value));
        let has_listed = listed.iter().any(|value| !value.is_null());
        if !has_listed || draft.members.contains_key("enum") {
            return self.describe(&mut draft.notes, keyword, describe_keyword(keyword, value));
        }
        draft.members.insert("enum".to_owned(), listed.into_iter().cloned().collect());
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(Value::to_string).collect();
            self.describe(&mut draft.notes, keyword, Some(format!("or {}", others.join(", "))));
        }
    }

    /// An exclusive limit. For integers it becomes an inclusive one.
    fn exclusive_limit(&mut self, draft: &mut SchemaDraft<'_, 'a>, keyword: &str, value: &Value) {
        let schema = draft.source;
        let (limit, step) = if keyword == "exclusiveMinimum" { ("minimum", 1) } else { ("maximum", -1) };
        let is_whole = schema.get("type").is_some_and(|kind| kind == "integer");
        let next = value.as_i64().and_then(|value| value.checked_add(step));
        match next.filter(|_| is_whole && self.supports(limit) && schema.get(limit).is_none()) {
            Some(next) => drop(draft.members.insert(limit.to_owned(), next.into())),
            None => self.describe(&mut draft.notes, keyword, describe_keyword(keyword, value)),
        }
    }

    fn properties(&mut self, draft: &mut SchemaDraft<'_, 'a>) {
        let schema = draft.source;
        let mut required = schema.required.clone();
        let mut written = Map::new();
        for (name, schemas) in &schema.properties {
            let step = Step::Entry("properties", name);
            if self.accepts_name(name) {
                let schema = self.at_step(step, |lowering| lowering.lower_schema(schemas, None));
                written.insert((*name).to_owned(), schema);
                continue;
            }
            let is_required = required.contains(name);
            required.retain(|required| required != name);
            let note = if is_required {
                "the provider does not accept this name; it is required, so no call can be valid"
            } else {
                "the provider does not accept this name; it cannot be given"
            };
            self.at_step(step, |lowering| lowering.report_loss("properties", LossKind::Dropped, note));
        }
        // A required property without a schema accepts any value.
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        if schema.get("properties").is_some()
            || self.dialect.is_native
            || self.dialect.is_explicit && is_object
        {
            for name in &required {
                if !schema.properties.iter().any(|(known, _)| known == name) && self.accepts_name(name) {
                    let schema = self.at_step(Step::Entry("properties", name), |lowering| {
                        lowering.lower_schema(&[], None)
                    });
                    written.insert((*name).to_owned(), schema);
                }
            }
            required.retain(|name| written.contains_key(*name));
        }
        if written.is_empty() && schema.get("properties").is_none() {
            draft.members.shift_remove("properties");
        } else {
            draft.members.insert("properties".to_owned(), written.into());
        }
        if !required.is_empty() {
            draft.members.insert("required".to_owned(), required.into());
        }
    }

    fn items(&mut self, draft: &mut SchemaDraft<'_, 'a>) {
        let schema = draft.source;
        let outer = self.dialect;
        self.dialect = outer.items.unwrap_or(outer);
        let mut forms = self.branches("prefixItems", schema.tuple.iter().copied(), None);
        let rest = match schema.items.as_slice() {
            [] => None,
            [Value::Bool(is_open)] => Some(Value::Bool(*is_open)),
            schemas => {
                Some(self.at_step(Step::Keyword("items"), |lowering| lowering.lower_schema(schemas, None)))
            }
        };
        self.dialect = outer;
        if forms.is_empty() {
            let rest = rest.map(|rest| if rest == true { json!({}) } else { rest });
            draft.members.extend(rest.map(|rest| ("items".to_owned(), rest)));
        } else if self.supports("prefixItems") {
            draft.members.insert("prefixItems".to_owned(), forms.into());
            let rest = rest.filter(|rest| self.dialect.keywords.is_none() || rest.is_object());
            draft.members.extend(rest.map(|rest| ("items".to_owned(), rest)));
        } else {
            self.report_loss(
                "prefixItems",
                LossKind::Rewritten,
                "`items`: each may have the form of any position",
            );
            draft.notes.push(format!("{} positions, each with its own form, in this order", forms.len()));
            forms.extend(rest.filter(Value::is_object));
            let items = if forms.len() == 1 { forms.remove(0) } else { object([("anyOf", forms.into())]) };
            draft.members.insert("items".to_owned(), items);
        }
    }
}

/// Adds empty `properties` to an object and empty `items` to an array.
fn make_explicit(members: &mut Map<String, Value>) {
    match members.get("type").and_then(Value::as_str) {
        Some("object") => drop(members.entry("properties").or_insert_with(|| json!({}))),
        Some("array") => drop(members.entry("items").or_insert_with(|| json!({}))),
        _ => {}
    }
}

/// OpenAPI's keyword for a type that may also be null.
fn nullable(draft: &mut SchemaDraft<'_, '_>, value: &Value) {
    if value == true
        && let Some(kind) = draft.source.get("type").and_then(Value::as_str)
    {
        draft.members.insert("type".to_owned(), json!([kind, "null"]));
    }
}

/// Describes a union. Often its branches only have `required`.
pub(super) fn alternatives(keyword: &str, branches: &[Value]) -> Option<String> {
    let is_single = |branch: &Value| branch.as_object().is_some_and(|members| members.len() == 1);
    let required = branches.iter().all(is_single).then(|| describe_required(keyword, branches)).flatten();
    required.or_else(|| describe_keyword(keyword, &Value::Array(branches.to_vec())))
}

/// Describes a union by what its branches require, if each of them requires something.
pub(super) fn describe_required(keyword: &str, branches: &[Value]) -> Option<String> {
    let how_many = if keyword == "oneOf" { "exactly one" } else { "at least one" };
    let names = |branch: &Value| {
        let names = branch.get("required")?.as_array()?.iter().filter_map(Value::as_str);
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    };
    let names: Vec<String> = branches.iter().map(names).collect::<Option<_>>()?;
    Some(format!("{how_many} of these must be given: {}", names.join("; ")))
}
