//! All that a conjunction of schemas says about one value, gathered from references and `allOf`.

use std::collections::VecDeque;

use serde_json::Value;

use super::Lowering;
use super::resolve::resolve;
use crate::Done;

/// One value's schema, borrowed from wherever its parts stand.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    /// Each keyword once, in the order of their first appearance.
    pub keywords: Vec<(&'a str, &'a Value)>,
    /// Of a property with more than one schema, all must be met.
    pub properties: Vec<(&'a str, Vec<&'a Value>)>,
    pub required: Vec<&'a str>,
    pub items: Vec<&'a Value>,
    /// The schemas of positions in a tuple.
    pub tuple: Vec<&'a Value>,
    /// `false` is among the schemas: nothing is valid.
    pub is_never: bool,
    /// What is referred to and contains this node.
    pub circular: Option<&'a Value>,
}

impl<'a> Node<'a> {
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.keywords.iter().find(|(name, _)| *name == keyword).map(|(_, value)| *value)
    }

    /// Adds a keyword, or the stricter of two values. `None` when they cannot be had both.
    fn add(&mut self, keyword: &'a str, value: &'a Value) -> Option<()> {
        let Some((_, there)) = self.keywords.iter_mut().find(|(name, _)| *name == keyword) else {
            self.keywords.push((keyword, value));
            return Some(());
        };
        if *there == value {
            return Some(());
        }
        let is_less = || Some(value.as_f64()? < there.as_f64()?);
        match keyword {
            "minLength" | "minItems" | "minProperties" | "minimum" | "exclusiveMinimum" if !is_less()? => {
                *there = value;
            }
            "maxLength" | "maxItems" | "maxProperties" | "maximum" | "exclusiveMaximum" if is_less()? => {
                *there = value;
            }
            "minLength" | "minItems" | "minProperties" | "minimum" | "exclusiveMinimum" => {}
            "maxLength" | "maxItems" | "maxProperties" | "maximum" | "exclusiveMaximum" => {}
            "type" if *there == "number" && value == "integer" => *there = value,
            "type" if there.as_array().is_some_and(|kinds| kinds.contains(value)) => *there = value,
            "type" if value.as_array().is_some_and(|kinds| kinds.contains(there)) => {}
            // What is said nearer to the use of a schema is meant.
            "title" | "description" | "default" | "examples" | "example" | "$comment" => {}
            "additionalProperties" if *there == true => *there = value,
            "additionalProperties" if value == true => {}
            "additionalProperties" if value == false => *there = value,
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
    /// Gathers what `schemas` say together; with `expand` also what they refer to, and what `allOf` holds.
    pub(super) fn gather(
        &mut self,
        schemas: &[&'a Value],
        inherited: Option<&'a Value>,
        expand: bool,
    ) -> Node<'a> {
        let mut node = Node::default();
        let mut waiting: VecDeque<&'a Value> = schemas.iter().copied().collect();
        while let Some(schema) = waiting.pop_front() {
            if self.is_too_large() {
                break;
            }
            match schema {
                Value::Bool(false) => node.is_never = true,
                Value::Object(members) => {
                    for (keyword, value) in members {
                        self.gather_keyword(
                            &mut node,
                            schema,
                            (keyword, value),
                            expand.then_some(&mut waiting),
                        );
                    }
                }
                _ => {}
            }
        }
        if let Some(kind) = inherited.filter(|_| node.get("type").is_none() && node.circular.is_none()) {
            node.keywords.push(("type", kind));
        }
        node
    }

    fn gather_keyword(
        &mut self,
        node: &mut Node<'a>,
        schema: &'a Value,
        (keyword, value): (&'a str, &'a Value),
        waiting: Option<&mut VecDeque<&'a Value>>,
    ) {
        // Draft 4 had a flag beside the limit.
        let is_flagged = |flag: &str| schema.get(flag) == Some(&Value::Bool(true));
        match (keyword, waiting) {
            ("$ref" | "$recursiveRef" | "$dynamicRef", Some(waiting)) => {
                self.follow(node, keyword, value, waiting);
            }
            ("$recursiveRef", None) => drop(node.add("$ref", value)),
            ("allOf", Some(waiting)) => waiting.extend(value.as_array().into_iter().flatten()),
            ("properties", _) => node.add_properties(keyword, value),
            ("required", _) => node.add_required(value),
            ("items", _) if value.is_array() => {
                node.tuple.extend(value.as_array().into_iter().flatten());
                node.items.extend(schema.get("additionalItems"));
            }
            ("items", _) => node.items.push(value),
            ("prefixItems", _) => node.tuple.extend(value.as_array().into_iter().flatten()),
            ("minimum", _) if is_flagged("exclusiveMinimum") => drop(node.add("exclusiveMinimum", value)),
            ("maximum", _) if is_flagged("exclusiveMaximum") => drop(node.add("exclusiveMaximum", value)),
            ("exclusiveMinimum" | "exclusiveMaximum", _) if value.is_boolean() => {}
            _ if super::keyword::is_bookkeeping(keyword) => {}
            _ => {
                if node.add(keyword, value).is_none() {
                    self.lose(keyword, Done::Dropped, format!("stands twice with different values; {value}"));
                }
            }
        }
    }

    fn follow(
        &mut self,
        node: &mut Node<'a>,
        keyword: &str,
        value: &'a Value,
        waiting: &mut VecDeque<&'a Value>,
    ) {
        let reference = value.as_str().unwrap_or_default();
        match resolve(self.root, reference) {
            Some(target) if self.open.iter().any(|open| std::ptr::eq(*open, target)) => {
                node.circular = node.circular.or(Some(target));
            }
            Some(target) => {
                self.open.push(target);
                waiting.push_back(target);
            }
            None => self.lose(keyword, Done::Dropped, format!("`{reference}` is not part of the schema")),
        }
    }
}
