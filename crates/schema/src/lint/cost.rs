//! A bound on the work one instance can cause. Only references can make a small schema expensive:
//! by fanning out (two references to a schema with two references …) or by going in circles.

use std::collections::HashMap;

use serde_json::Value;

use super::problem::{Part, Path, Report};
use super::walk::address;

/// Schema visits per instance location before a schema is refused.
pub const MOST_VISITS: u64 = 1_000_000;
/// How deep an instance is followed.
const INSTANCE_DEPTH: u8 = 8;
/// Schemas inside schemas for one instance location, through references.
const DEEPEST: usize = 400;

pub fn check<'s>(
    schema: &'s Value,
    targets: &HashMap<usize, &'s Value>,
    anchors: &[(&'s str, &'s Value)],
    report: &mut Report,
) {
    let mut cost = Cost { targets, anchors, known: HashMap::new(), depth: 0 };
    let (pointer, message, help) = match cost.of(schema, INSTANCE_DEPTH) {
        Ok(visits) if visits <= MOST_VISITS => return,
        Err(Endless(reference)) => (
            reference.and_then(|reference| find(schema, reference, &Path::Root)).unwrap_or_default(),
            "checking a value would never end: this reference leads back to here for the same value",
            "a recursive reference must go through `properties`, `items` or the like",
        ),
        Ok(_) => (
            String::new(),
            "checking one value against this schema can take more than a million steps",
            "refer to each definition from fewer places",
        ),
    };
    report.add(
        "schema-unbounded-cost",
        &Path::At(&pointer),
        Part::Value,
        message.to_owned(),
        Some(help.to_owned()),
    );
}

/// A circle of references on one instance, closed by the reference at this address.
struct Endless(Option<usize>);

/// The place of a value in the document, by its address.
fn find(value: &Value, wanted: usize, path: &Path<'_>) -> Option<String> {
    match value {
        _ if address(value) == wanted => Some(path.render()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| find(item, wanted, &path.index(index)))
        }
        Value::Object(members) => {
            members.iter().find_map(|(key, member)| find(member, wanted, &path.key(key)))
        }
        _ => None,
    }
}

struct Cost<'c, 's> {
    targets: &'c HashMap<usize, &'s Value>,
    anchors: &'c [(&'s str, &'s Value)],
    /// `None` while a schema is being counted.
    known: HashMap<(usize, u8), Option<u64>>,
    depth: usize,
}

impl<'s> Cost<'_, 's> {
    fn of(&mut self, schema: &'s Value, levels: u8) -> Result<u64, Endless> {
        let Value::Object(object) = schema else {
            return Ok(1);
        };
        let key = (address(schema), levels);
        if let Some(known) = self.known.get(&key) {
            return known.ok_or(Endless(None));
        }
        if self.depth > DEEPEST {
            return Ok(u64::MAX);
        }
        self.known.insert(key, None);
        self.depth += 1;
        let mut total = 1_u64;
        for (name, value) in object {
            total = total.saturating_add(self.in_place(name, value, levels)?);
            if total > MOST_VISITS {
                break;
            }
        }
        if let Some(below) = levels.checked_sub(1).filter(|_| total <= MOST_VISITS) {
            let part = self.object_part(schema, below)?.max(self.array_part(schema, below)?);
            total = total.saturating_add(part);
        }
        self.depth -= 1;
        self.known.insert(key, Some(total));
        Ok(total)
    }

    /// Schemas for the same instance.
    fn in_place(&mut self, name: &str, value: &'s Value, levels: u8) -> Result<u64, Endless> {
        match (name, value) {
            ("not" | "if" | "then" | "else", schema) => self.of(schema, levels),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => self.sum(branches, levels),
            ("dependentSchemas" | "dependencies", Value::Object(dependents)) => {
                self.sum(dependents.values(), levels)
            }
            ("$ref", reference) => {
                let here = address(reference);
                let Some(target) = self.targets.get(&here) else {
                    return Ok(1);
                };
                self.of(target, levels).map_err(|Endless(closing)| Endless(closing.or(Some(here))))
            }
            ("$dynamicRef", Value::String(reference)) => {
                let wanted = reference.rsplit('#').next().unwrap_or_default();
                let mut most = 1;
                for (_, target) in self.anchors.iter().filter(|(anchor, _)| *anchor == wanted) {
                    most = most.max(self.of(target, levels)?);
                }
                Ok(most)
            }
            _ => Ok(0),
        }
    }

    /// The dearest member an object can have.
    fn object_part(&mut self, schema: &'s Value, levels: u8) -> Result<u64, Endless> {
        let mut every = 0_u64;
        for keyword in ["propertyNames", "unevaluatedProperties"] {
            every = every.saturating_add(self.optional(schema.get(keyword), levels)?);
        }
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            every = every.saturating_add(self.sum(patterns.values(), levels)?);
        }
        let mut most = self.optional(schema.get("additionalProperties"), levels)?;
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for property in properties.values() {
                most = most.max(self.of(property, levels)?);
            }
        }
        Ok(every.saturating_add(most))
    }

    /// The dearest item an array can have.
    fn array_part(&mut self, schema: &'s Value, levels: u8) -> Result<u64, Endless> {
        let mut every = 0_u64;
        for keyword in ["contains", "unevaluatedItems"] {
            every = every.saturating_add(self.optional(schema.get(keyword), levels)?);
        }
        let mut most = self.optional(schema.get("items"), levels)?;
        if let Some(Value::Array(tuple)) = schema.get("prefixItems") {
            for item in tuple {
                most = most.max(self.of(item, levels)?);
            }
        }
        Ok(every.saturating_add(most))
    }

    fn optional(&mut self, schema: Option<&'s Value>, levels: u8) -> Result<u64, Endless> {
        schema.map_or(Ok(0), |schema| self.of(schema, levels))
    }

    fn sum(&mut self, schemas: impl IntoIterator<Item = &'s Value>, levels: u8) -> Result<u64, Endless> {
        let mut total = 0_u64;
        for schema in schemas {
            total = total.saturating_add(self.of(schema, levels)?);
            if total > MOST_VISITS {
                break;
            }
        }
        Ok(total)
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
