//! A gathered schema written in the provider's form, keyword by keyword.

use serde_json::{Map, Value, json};

use super::keyword::{Shape, fits, is_annotation, sentence, shape, words};
use super::node::Node;
use super::text::Step;
use super::{Lowering, References};
use crate::Done;
use crate::provider::object;

/// A schema in the making.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub members: Map<String, Value>,
    /// What only words can say.
    pub notes: Vec<String>,
}

impl<'a> Lowering<'a, '_> {
    /// The schema, with what it cannot say in its description.
    pub(super) fn emit(&mut self, node: &Node<'a>) -> Value {
        if node.is_never && self.policy.keeps.is_none() {
            return json!({ "not": {} });
        }
        let Draft { mut members, notes } = self.draft(node);
        if !notes.is_empty() {
            let description = sentence(members.get("description").and_then(Value::as_str), &notes);
            members.insert("description".to_owned(), description.into());
        }
        if self.is_native() { self.native(members) } else { Value::Object(members) }
    }

    pub(super) fn draft(&mut self, node: &Node<'a>) -> Draft {
        let mut draft = Draft::default();
        if node.is_never {
            self.describe(&mut draft, "not", Some("not allowed".to_owned()));
        }
        for (keyword, value) in &node.keywords {
            self.keyword(&mut draft, node, keyword, value);
        }
        self.properties(&mut draft, node);
        self.items(&mut draft, node);
        if self.policy.is_explicit && !self.is_native() {
            make_explicit(&mut draft.members);
        }
        draft
    }

    fn keyword(&mut self, draft: &mut Draft, node: &Node<'a>, keyword: &'a str, value: &'a Value) {
        let is_kept = self.keeps(keyword) && fits(keyword, value);
        match keyword {
            "properties" => drop(draft.members.insert("properties".to_owned(), Value::Null)),
            "$defs" | "definitions" if self.policy.references == References::Inlined => {}
            "anyOf" | "oneOf" => self.union(draft, node, keyword, value),
            "enum" | "const" if self.policy.keeps.is_some() => self.values(draft, keyword, value),
            "format" if is_kept && !self.takes_format(value) => {
                self.describe(draft, keyword, words(keyword, value));
            }
            "exclusiveMinimum" | "exclusiveMaximum" if !is_kept => {
                self.exclusive(draft, node, keyword, value)
            }
            "nullable" if !is_kept => self.nullable(draft, node, value),
            _ if is_kept => self.kept(draft, keyword, value),
            _ => self.without(draft, keyword, value),
        }
    }

    fn takes_format(&self, format: &Value) -> bool {
        self.policy.formats.is_none_or(|formats| format.as_str().is_some_and(|name| formats.contains(&name)))
    }

    /// A keyword that the provider honours.
    fn kept(&mut self, draft: &mut Draft, keyword: &'a str, value: &'a Value) {
        let written = match (shape(keyword), value) {
            (Shape::Schema, Value::Object(_)) => {
                self.below(Step::Keyword(keyword), |below| below.child(&[value], None))
            }
            (Shape::Schemas, Value::Array(branches)) if !branches.is_empty() => {
                Value::Array(self.branches(keyword, branches, None))
            }
            (Shape::Named, Value::Object(entries)) => {
                let entry = |(name, schema): (&'a String, &'a Value)| {
                    let step = Step::Entry(keyword, name);
                    (name.clone(), self.below(step, |below| below.child(&[schema], None)))
                };
                Value::Object(entries.iter().map(entry).collect())
            }
            (Shape::None, _) | (Shape::Schema, Value::Bool(_)) => value.clone(),
            _ => return,
        };
        draft.members.insert(keyword.to_owned(), written);
    }

    fn branches(
        &mut self,
        keyword: &'a str,
        branches: &'a [Value],
        inherited: Option<&'a Value>,
    ) -> Vec<Value> {
        let lowered = |(at, branch): (usize, &'a Value)| {
            self.below(Step::Branch(keyword, at), |below| below.child(&[branch], inherited))
        };
        branches.iter().enumerate().map(lowered).collect()
    }

    /// A keyword that the provider does not honour.
    fn without(&mut self, draft: &mut Draft, keyword: &str, value: &Value) {
        let is_empty =
            value.as_object().is_some_and(Map::is_empty) || value == false && keyword == "uniqueItems";
        match (keyword, value) {
            ("title", Value::String(title)) if !draft.members.contains_key("description") => {
                draft.members.insert("description".to_owned(), title.as_str().into());
            }
            ("additionalProperties" | "unevaluatedProperties", Value::Bool(is_open)) => {
                if !is_open {
                    self.lose(keyword, Done::Dropped, "other members are refused when the call is made");
                }
            }
            _ if is_annotation(keyword) || is_empty => {}
            _ if !fits(keyword, value) => self.lose(keyword, Done::Dropped, "its value is not valid"),
            _ => self.describe(draft, keyword, words(keyword, value)),
        }
    }

    /// Says a constraint in words, if there are any.
    pub(super) fn describe(&mut self, draft: &mut Draft, keyword: &str, words: Option<String>) {
        match words {
            Some(words) => {
                self.lose(keyword, Done::Described, words.clone());
                draft.notes.push(words);
            }
            None => self.lose(keyword, Done::Dropped, "too long for a description"),
        }
    }

    fn union(&mut self, draft: &mut Draft, node: &Node<'a>, keyword: &'a str, value: &'a Value) {
        let Some(branches) = value.as_array().filter(|branches| !branches.is_empty()) else { return };
        // In the native form a union stands alone.
        let is_shaped = !node.properties.is_empty() || !node.items.is_empty() || node.get("enum").is_some();
        let target = match keyword {
            _ if self.is_native() && is_shaped => None,
            kept if self.keeps(kept) => Some(kept),
            "oneOf" if node.get("anyOf").is_none() => Some("anyOf"),
            _ => None,
        };
        let Some(target) = target else {
            return self.describe(draft, keyword, alternatives(keyword, branches));
        };
        let inherited = node.get("type").filter(|_| self.is_native());
        let lowered = self.branches(keyword, branches, inherited);
        if target != keyword {
            self.lose(keyword, Done::Rewritten, "`anyOf`: more than one may match");
        }
        draft.members.insert(target.to_owned(), lowered.into());
    }

    /// `enum` and `const`, where only some values can be listed.
    fn values(&mut self, draft: &mut Draft, keyword: &str, value: &'a Value) {
        let values = if keyword == "const" { std::slice::from_ref(value) } else { list(value) };
        let (listed, others): (Vec<&Value>, Vec<&Value>) =
            values.iter().partition(|value| (self.policy.lists)(value));
        let has_listed = listed.iter().any(|value| !value.is_null());
        if !has_listed || draft.members.contains_key("enum") {
            return self.describe(draft, keyword, words(keyword, value));
        }
        draft.members.insert("enum".to_owned(), listed.into_iter().cloned().collect());
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(Value::to_string).collect();
            self.describe(draft, keyword, Some(format!("or {}", others.join(", "))));
        }
    }

    /// A limit that is itself excluded. Among whole numbers the next one is a limit that is not.
    fn exclusive(&mut self, draft: &mut Draft, node: &Node<'a>, keyword: &str, value: &Value) {
        let (limit, step) = if keyword == "exclusiveMinimum" { ("minimum", 1) } else { ("maximum", -1) };
        let is_whole = node.get("type").is_some_and(|kind| kind == "integer");
        let next = value.as_i64().and_then(|value| value.checked_add(step));
        match next.filter(|_| is_whole && self.keeps(limit) && node.get(limit).is_none()) {
            Some(next) => drop(draft.members.insert(limit.to_owned(), next.into())),
            None => self.describe(draft, keyword, words(keyword, value)),
        }
    }

    /// OpenAPI's word for a type that may also be null.
    fn nullable(&mut self, draft: &mut Draft, node: &Node<'a>, value: &Value) {
        if value == true
            && let Some(kind) = node.get("type").and_then(Value::as_str)
        {
            draft.members.insert("type".to_owned(), json!([kind, "null"]));
        }
    }

    fn properties(&mut self, draft: &mut Draft, node: &Node<'a>) {
        let mut required = node.required.clone();
        let mut written = Map::new();
        for (name, schemas) in &node.properties {
            let step = Step::Property(name);
            if self.takes_name(name) {
                let schema = self.below(step, |below| below.child(schemas, None));
                written.insert((*name).to_owned(), schema);
                continue;
            }
            let is_required = required.contains(name);
            required.retain(|required| required != name);
            let note = if is_required {
                "the provider does not take this name; it is required, so no call can be valid"
            } else {
                "the provider does not take this name; it cannot be given"
            };
            self.below(step, |below| below.lose("properties", Done::Dropped, note));
        }
        // A name that is required and described nowhere takes any value.
        let is_object = node.get("type").is_some_and(|kind| kind == "object");
        if node.get("properties").is_some() || self.is_native() || self.policy.is_explicit && is_object {
            for name in &required {
                if !node.properties.iter().any(|(known, _)| known == name) && self.takes_name(name) {
                    let schema = self.below(Step::Property(name), |below| below.child(&[], None));
                    written.insert((*name).to_owned(), schema);
                }
            }
            required.retain(|name| written.contains_key(*name));
        }
        if written.is_empty() && node.get("properties").is_none() {
            draft.members.shift_remove("properties");
        } else {
            draft.members.insert("properties".to_owned(), written.into());
        }
        if !required.is_empty() {
            draft.members.insert("required".to_owned(), required.into());
        }
    }

    fn items(&mut self, draft: &mut Draft, node: &Node<'a>) {
        let outer = self.policy;
        self.policy = outer.items.unwrap_or(outer);
        let tuple = |lowering: &mut Self| {
            let one = |(at, schema): (usize, &&'a Value)| {
                lowering.below(Step::Branch("prefixItems", at), |below| below.child(&[schema], None))
            };
            node.tuple.iter().enumerate().map(one).collect::<Vec<Value>>()
        };
        let mut forms = tuple(self);
        let rest = match node.items.as_slice() {
            [] => None,
            [Value::Bool(is_open)] => Some(Value::Bool(*is_open)),
            schemas => Some(self.below(Step::Items, |below| below.child(schemas, None))),
        };
        self.policy = outer;
        if forms.is_empty() {
            let rest = rest.map(|rest| if rest == true { json!({}) } else { rest });
            draft.members.extend(rest.map(|rest| ("items".to_owned(), rest)));
        } else if self.keeps("prefixItems") {
            draft.members.insert("prefixItems".to_owned(), forms.into());
            let rest = rest.filter(|rest| self.policy.keeps.is_none() || rest.is_object());
            draft.members.extend(rest.map(|rest| ("items".to_owned(), rest)));
        } else {
            self.lose("prefixItems", Done::Rewritten, "`items`: each may have the form of any position");
            draft.notes.push(format!("{} positions, each with its own form, in this order", forms.len()));
            forms.extend(rest.filter(Value::is_object));
            let items = if forms.len() == 1 { forms.remove(0) } else { object([("anyOf", forms.into())]) };
            draft.members.insert("items".to_owned(), items);
        }
    }
}

/// Says of an object and of an array what goes without saying.
fn make_explicit(members: &mut Map<String, Value>) {
    match members.get("type").and_then(Value::as_str) {
        Some("object") => drop(members.entry("properties").or_insert_with(|| json!({}))),
        Some("array") => drop(members.entry("items").or_insert_with(|| json!({}))),
        _ => {}
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A union in words: often its branches only say what must be there.
pub(super) fn alternatives(keyword: &str, branches: &[Value]) -> Option<String> {
    let how_many = if keyword == "oneOf" { "exactly one" } else { "at least one" };
    let names = |branch: &Value| {
        let members = branch.as_object().filter(|members| members.len() == 1)?;
        let names = members.get("required")?.as_array()?.iter().filter_map(Value::as_str);
        Some(names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and "))
    };
    match branches.iter().map(names).collect::<Option<Vec<String>>>() {
        Some(names) => Some(format!("{how_many} of these must be given: {}", names.join("; "))),
        None => words(keyword, &Value::Array(branches.to_vec())),
    }
}
