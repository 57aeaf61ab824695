//! A bound on the work of validating one instance. Only references make a small schema expensive: they fan out (two
//! references to a schema with two references …) or form a cycle.

use std::collections::HashMap;

use serde_json::Value;

use super::linter::{RefTargets, address};
use super::problem::{Problem, Report};
use crate::keyword::{Keyword, Shape};
use crate::pointer::Location;

/// Schema visits per instance location; a schema that may need more is refused.
const MAX_VISITS: u64 = 1_000_000;
/// How deep an instance is assumed to be.
const INSTANCE_DEPTH: u8 = 8;
/// Schemas inside schemas for one instance location, through references.
const MAX_DEPTH: usize = 400;

pub fn check<'s>(
    schema: &'s Value,
    targets: &RefTargets<'s>,
    anchors: &[(&'s str, &'s Value)],
    report: &mut Report,
) {
    let mut cost = Cost { targets, anchors, known: HashMap::new(), depth: 0 };
    let (pointer, message, help) = match cost.visits(schema, INSTANCE_DEPTH) {
        Ok(visits) if visits <= MAX_VISITS => return,
        Err(Cycle(reference)) => (
            reference.unwrap_or_default(),
            "validation would never end: this `$ref` refers back to itself for the same value",
            "a recursive reference must go through `properties`, `items` or the like",
        ),
        Ok(_) => (
            "",
            "validating one value against this schema can take more than a million steps",
            "refer to each definition from fewer places",
        ),
    };
    let problem = Problem::at_value("schema-unbounded-cost", &Location::Pointer(pointer), message);
    report.add(problem.help(help));
}

/// A cycle of references on one instance, closed by the reference with this pointer.
struct Cycle<'c>(Option<&'c str>);

const EVERY_MEMBER: [Keyword; 3] =
    [Keyword::PropertyNames, Keyword::UnevaluatedProperties, Keyword::PatternProperties];
const EITHER_MEMBER: [Keyword; 2] = [Keyword::AdditionalProperties, Keyword::Properties];
const EVERY_ITEM: [Keyword; 2] = [Keyword::Contains, Keyword::UnevaluatedItems];
const EITHER_ITEM: [Keyword; 2] = [Keyword::Items, Keyword::PrefixItems];

/// The schemas that a keyword of `schema` contains.
fn schemas_of(schema: &Value, keyword: Keyword) -> Vec<&Value> {
    match (keyword.shape(), schema.get(keyword.name())) {
        (Shape::Schema, Some(schema)) => vec![schema],
        (Shape::SchemaList, Some(Value::Array(schemas))) => schemas.iter().collect(),
        (Shape::SchemaMap, Some(Value::Object(schemas))) => schemas.values().collect(),
        _ => Vec::new(),
    }
}

struct Cost<'c, 's> {
    targets: &'c RefTargets<'s>,
    anchors: &'c [(&'s str, &'s Value)],
    /// `None` while a schema is being counted.
    known: HashMap<(usize, u8), Option<u64>>,
    depth: usize,
}

impl<'c, 's> Cost<'c, 's> {
    fn visits(&mut self, schema: &'s Value, levels: u8) -> Result<u64, Cycle<'c>> {
        let Value::Object(object) = schema else {
            return Ok(1);
        };
        let key = (address(schema), levels);
        if let Some(known) = self.known.get(&key) {
            return known.ok_or(Cycle(None));
        }
        if self.depth > MAX_DEPTH {
            return Ok(u64::MAX);
        }
        self.known.insert(key, None);
        self.depth += 1;
        let mut total = 1_u64;
        for (name, value) in object {
            total = total.saturating_add(self.in_place_visits(name, value, levels)?);
            if total > MAX_VISITS {
                break;
            }
        }
        if let Some(below) = levels.checked_sub(1).filter(|_| total <= MAX_VISITS) {
            let member = self.child_visits(schema, &EVERY_MEMBER, &EITHER_MEMBER, below)?;
            let item = self.child_visits(schema, &EVERY_ITEM, &EITHER_ITEM, below)?;
            total = total.saturating_add(member.max(item));
        }
        self.depth -= 1;
        self.known.insert(key, Some(total));
        Ok(total)
    }

    /// Schemas for the same instance.
    fn in_place_visits(&mut self, name: &str, value: &'s Value, levels: u8) -> Result<u64, Cycle<'c>> {
        match (name, value) {
            ("not" | "if" | "then" | "else", schema) => self.visits(schema, levels),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => self.sum(branches, levels),
            ("dependentSchemas" | "dependencies", Value::Object(dependents)) => {
                self.sum(dependents.values(), levels)
            }
            ("$ref", reference) => match self.targets.get(&address(reference)) {
                Some((target, pointer)) => {
                    self.visits(target, levels).map_err(|Cycle(closing)| Cycle(closing.or(Some(pointer))))
                }
                None => Ok(1),
            },
            ("$dynamicRef", Value::String(reference)) => {
                let wanted = reference.rsplit('#').next().unwrap_or_default();
                let mut most = 1;
                for (_, target) in self.anchors.iter().filter(|(anchor, _)| *anchor == wanted) {
                    most = most.max(self.visits(target, levels)?);
                }
                Ok(most)
            }
            _ => Ok(0),
        }
    }

    /// The most visits that a child of the instance can need: the schemas of all `every` keywords apply to it, and one
    /// schema of the `either` keywords.
    fn child_visits(
        &mut self,
        schema: &'s Value,
        every: &[Keyword],
        either: &[Keyword],
        levels: u8,
    ) -> Result<u64, Cycle<'c>> {
        let total = self.sum(every.iter().flat_map(|keyword| schemas_of(schema, *keyword)), levels)?;
        let mut most = 0;
        for schema in either.iter().flat_map(|keyword| schemas_of(schema, *keyword)) {
            most = most.max(self.visits(schema, levels)?);
        }
        Ok(total.saturating_add(most))
    }

    fn sum(&mut self, schemas: impl IntoIterator<Item = &'s Value>, levels: u8) -> Result<u64, Cycle<'c>> {
        let mut total = 0_u64;
        for schema in schemas {
            total = total.saturating_add(self.visits(schema, levels)?);
            if total > MAX_VISITS {
                break;
            }
        }
        Ok(total)
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
