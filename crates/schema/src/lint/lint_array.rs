//! The keywords for arrays: tuples, items, `contains` and `unevaluatedItems`.

use serde_json::Value;

use super::linter::{ChildKind, Linter, SchemaVisit};
use super::problem::Problem;
use super::scope::{EvaluatedExtent, Scope};
use crate::keyword::{Keyword, has_rules};

impl<'s> Linter<'s> {
    pub(super) fn array_group(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        self.tuple(schema, scope);
        if let Some(items) = schema.get(Keyword::Items) {
            scope.evaluated.items = EvaluatedExtent::All;
            // `items: false` after a tuple only limits the length.
            if !(schema.has(Keyword::PrefixItems) && items.is_boolean()) {
                self.child(items, scope, ChildKind::Value, &schema.key("items"));
            }
        }
        self.contains(schema, scope);
        if let Some(rest) = schema.get(Keyword::UnevaluatedItems)
            && scope.evaluated.items != EvaluatedExtent::All
        {
            if rest.is_object() {
                self.child(rest, scope, ChildKind::Value, &schema.key("unevaluatedItems"));
            }
            scope.evaluated.items = EvaluatedExtent::All;
        }
    }

    fn tuple(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let Some(Value::Array(tuple)) = schema.get(Keyword::PrefixItems) else { return };
        let at = schema.key("prefixItems");
        let count = tuple.len();
        // Compared as floats: 2 and 2.0 are the same JSON number.
        let length = u32::try_from(count).ok().map(f64::from);
        let is_fixed = |keyword| schema.get(keyword).and_then(Value::as_f64) == length;
        let is_closed =
            is_fixed(Keyword::MaxItems) || schema.get(Keyword::Items) == Some(&Value::Bool(false));
        if !(is_fixed(Keyword::MinItems) && is_closed) {
            let message = format!("`prefixItems` has {count} items, but the length is not fixed to {count}");
            let problem = Problem::at_key("schema-loose-tuple", &at, message);
            self.report.add(problem.help(format!("add `\"minItems\": {count}` and `\"items\": false`")));
        }
        if !tuple.is_empty() {
            scope.evaluated.items.merge(EvaluatedExtent::Some);
        }
        for (index, schema) in tuple.iter().enumerate() {
            self.child(schema, scope, ChildKind::Value, &at.index(index));
        }
    }

    fn contains(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let Some(contains) = schema.get(Keyword::Contains) else {
            return self.need(schema, &[Keyword::MaxContains, Keyword::MinContains], "contains");
        };
        let min = schema.get(Keyword::MinContains).map_or(Some(1.0), Value::as_f64);
        let max = schema.get(Keyword::MaxContains).and_then(Value::as_f64);
        match (min, max) {
            (Some(0.0), None) => {
                let message =
                    "`contains` has no effect when `minContains` is 0 and there is no `maxContains`";
                let help = "remove `contains`, or require at least one item";
                return self.ignored(&schema.key("minContains"), message, help);
            }
            (Some(min), Some(max)) if min > max => {
                let at = if schema.has(Keyword::MinContains) { "minContains" } else { "maxContains" };
                let message =
                    format!("`minContains` {min} is above `maxContains` {max}, so no array is valid");
                return self.report.add(Problem::at_value("schema-never-valid", &schema.key(at), message));
            }
            _ => {}
        }
        if has_rules(contains) {
            scope.evaluated.items = EvaluatedExtent::All;
        }
        self.child(contains, scope, ChildKind::Tried, &schema.key("contains"));
    }
}

#[cfg(test)]
#[path = "lint_array_tests.rs"]
mod tests;
