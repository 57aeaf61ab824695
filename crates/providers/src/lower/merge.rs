//! Merges a conjunction of schemas (references, `allOf`) into the constraints of one value.

use std::collections::VecDeque;

use serde_json::Value;

use super::Lowering;
use super::resolve::resolve;
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
        match keyword {
            "minLength" | "minItems" | "minProperties" | "minimum" | "exclusiveMinimum" if !is_less()? => {
                *existing = value;
            }
            "maxLength" | "maxItems" | "maxProperties" | "maximum" | "exclusiveMaximum" if is_less()? => {
                *existing = value;
            }
            "minLength" | "minItems" | "minProperties" | "minimum" | "exclusiveMinimum" => {}
            "maxLength" | "maxItems" | "maxProperties" | "maximum" | "exclusiveMaximum" => {}
            "type" if *existing == "number" && value == "integer" => *existing = value,
            "type" if existing.as_array().is_some_and(|kinds| kinds.contains(value)) => *existing = value,
            "type" if value.as_array().is_some_and(|kinds| kinds.contains(existing)) => {}
            // The annotation nearest to the use of the schema wins.
            "title" | "description" | "default" | "examples" | "example" | "$comment" => {}
            "additionalProperties" if *existing == true => *existing = value,
            "additionalProperties" if value == true => {}
            "additionalProperties" if value == false => *existing = value,
            _ if super::keyword::is_annotation(keyword) => {}
            _ => return None,
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
            _ if super::keyword::is_identification(keyword) => {}
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
