//! Merges a conjunction of schemas (references, `allOf`) into the constraints of one value. References are resolved
//! within one schema.

use std::collections::VecDeque;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::Lowering;
use crate::LossKind;

/// The merged constraints of one value, borrowed from the schemas that they come from.
#[derive(Debug, Default)]
pub(super) struct MergedSchema<'a> {
    /// Each keyword once, in the order of their first appearance.
    pub keywords: Vec<(&'a str, &'a Value)>,
    /// A property must match all of its schemas.
    pub properties: Vec<(&'a str, Vec<&'a Value>)>,
    pub required: Vec<&'a str>,
    pub items: Vec<&'a Value>,
    /// The schemas of the positions of a tuple.
    pub tuple: Vec<&'a Value>,
    /// `false` is among the schemas: nothing is valid.
    pub is_never: bool,
    /// A schema that contains this one and is referred to by it.
    pub recursive: Option<&'a Value>,
}

impl<'a> MergedSchema<'a> {
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.keywords.iter().find(|(name, _)| *name == keyword).map(|(_, value)| *value)
    }

    /// Adds a keyword. Of two values the stricter one is used; `None` if they cannot be combined.
    fn add(&mut self, keyword: &'a str, value: &'a Value) -> Option<()> {
        let Some((_, existing)) = self.keywords.iter_mut().find(|(name, _)| *name == keyword) else {
            self.keywords.push((keyword, value));
            return Some(());
        };
        if *existing == value {
            return Some(());
        }
        let is_less = || Some(value.as_f64()? < existing.as_f64()?);
        let lists = |kinds: &Value, kind: &Value| kinds.as_array().is_some_and(|kinds| kinds.contains(kind));
        let is_stricter = match keyword {
            "minLength" | "minItems" | "minProperties" | "minimum" | "exclusiveMinimum" => !is_less()?,
            "maxLength" | "maxItems" | "maxProperties" | "maximum" | "exclusiveMaximum" => is_less()?,
            "type" if *existing == "number" && value == "integer" => true,
            "type" if lists(existing, value) => true,
            "type" if lists(value, existing) => false,
            // The annotation nearest to the use of the schema wins.
            "title" | "description" | "default" | "examples" | "example" | "$comment" => false,
            "additionalProperties" if *existing == true || value == false => true,
            "additionalProperties" if value == true => false,
            _ if super::keyword::is_annotation(keyword) => false,
            _ => return None,
        };
        if is_stricter {
            *existing = value;
        }
        Some(())
    }

    fn add_properties(&mut self, keyword: &'a str, value: &'a Value) {
        let Some(properties) = value.as_object() else { return };
        let _ = self.add(keyword, value);
        for (name, schema) in properties {
            match self.properties.iter_mut().find(|(known, _)| known == name) {
                Some((_, schemas)) => schemas.push(schema),
                None => self.properties.push((name, vec![schema])),
            }
        }
    }

    fn add_required(&mut self, value: &'a Value) {
        for name in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }
}

impl<'a> Lowering<'a, '_> {
    /// Merges `schemas`; with `expand` also the targets of their references and the schemas of `allOf`.
    pub(super) fn merge(
        &mut self,
        schemas: &[&'a Value],
        inherited: Option<&'a Value>,
        expand: bool,
    ) -> MergedSchema<'a> {
        let mut merged = MergedSchema::default();
        let mut pending: VecDeque<&'a Value> = schemas.iter().copied().collect();
        while let Some(schema) = pending.pop_front() {
            if self.is_too_large() {
                break;
            }
            match schema {
                Value::Bool(false) => merged.is_never = true,
                Value::Object(members) => {
                    for (keyword, value) in members {
                        self.merge_keyword(
                            &mut merged,
                            schema,
                            (keyword, value),
                            expand.then_some(&mut pending),
                        );
                    }
                }
                _ => {}
            }
        }
        if let Some(kind) = inherited.filter(|_| merged.get("type").is_none() && merged.recursive.is_none()) {
            merged.keywords.push(("type", kind));
        }
        merged
    }

    fn merge_keyword(
        &mut self,
        merged: &mut MergedSchema<'a>,
        schema: &'a Value,
        (keyword, value): (&'a str, &'a Value),
        pending: Option<&mut VecDeque<&'a Value>>,
    ) {
        // In draft 4 it is a flag beside the limit.
        let is_flagged = |flag: &str| schema.get(flag) == Some(&Value::Bool(true));
        match (keyword, pending) {
            ("$ref" | "$recursiveRef" | "$dynamicRef", Some(pending)) => {
                self.follow(merged, keyword, value, pending);
            }
            ("$recursiveRef", None) => drop(merged.add("$ref", value)),
            ("allOf", Some(pending)) => pending.extend(value.as_array().into_iter().flatten()),
            ("properties", _) => merged.add_properties(keyword, value),
            ("required", _) => merged.add_required(value),
            ("items", _) if value.is_array() => {
                merged.tuple.extend(value.as_array().into_iter().flatten());
                merged.items.extend(schema.get("additionalItems"));
            }
            ("items", _) => merged.items.push(value),
            ("prefixItems", _) => merged.tuple.extend(value.as_array().into_iter().flatten()),
            ("minimum", _) if is_flagged("exclusiveMinimum") => drop(merged.add("exclusiveMinimum", value)),
            ("maximum", _) if is_flagged("exclusiveMaximum") => drop(merged.add("exclusiveMaximum", value)),
            ("exclusiveMinimum" | "exclusiveMaximum", _) if value.is_boolean() => {}
            // They identify a schema or its parts and do not constrain values.
            ("$schema" | "id" | "$recursiveAnchor" | "$vocabulary" | "additionalItems", _) => {}
            _ => {
                if merged.add(keyword, value).is_none() {
                    self.report_loss(
                        keyword,
                        LossKind::Dropped,
                        format!("given twice with different values; {value}"),
                    );
                }
            }
        }
    }

    fn follow(
        &mut self,
        merged: &mut MergedSchema<'a>,
        keyword: &str,
        value: &'a Value,
        pending: &mut VecDeque<&'a Value>,
    ) {
        let reference = value.as_str().unwrap_or_default();
        match resolve(self.root, reference) {
            Some(target) if self.open.iter().any(|open| std::ptr::eq(*open, target)) => {
                merged.recursive = merged.recursive.or(Some(target));
            }
            Some(target) => {
                self.open.push(target);
                pending.push_back(target);
            }
            None => self.report_loss(
                keyword,
                LossKind::Dropped,
                format!("`{reference}` is not part of the schema"),
            ),
        }
    }
}

/// The schema that `reference` names; `None` if it is in another document.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let resource = if base.is_empty() { root } else { find(root, &|schema| is_named(schema, base))? };
    let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
    if fragment.is_empty() {
        return Some(resource);
    }
    if fragment.starts_with('/') {
        return resource.pointer(&fragment);
    }
    let anchor = |schema: &Value| {
        let is = |keyword: &str, name: &str| schema.get(keyword).and_then(Value::as_str) == Some(name);
        is("$anchor", &fragment)
            || is("$dynamicAnchor", &fragment)
            || is("$id", reference)
            || is("id", reference)
    };
    find(resource, &anchor)
}

fn is_named(schema: &Value, base: &str) -> bool {
    let named = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let id = named("$id").or_else(|| named("id"));
    id.is_some_and(|id| {
        let id = id.trim_end_matches('#');
        // Without a base URI, relative references are compared by their last segments.
        !id.is_empty() && (id == base || id.ends_with(&format!("/{}", base.trim_start_matches("./"))))
    })
}

/// The first value, from the outside in, that `is_match`.
fn find<'a>(value: &'a Value, is_match: &dyn Fn(&Value) -> bool) -> Option<&'a Value> {
    match value {
        Value::Object(members) => {
            if is_match(value) {
                return Some(value);
            }
            members.values().find_map(|member| find(member, is_match))
        }
        Value::Array(items) => items.iter().find_map(|item| find(item, is_match)),
        _ => None,
    }
}
