//! `$ref`, `$dynamicRef` and `$recursiveRef`. Ajv inlines a target without references of its own, with the context of
//! the reference; it compiles any other target as a function of its own.

use serde_json::Value;

use super::linter::{Linter, SchemaVisit, address, is_truthy};
use super::problem::Problem;
use super::ref_resolver::{Base, Target, Unresolved};
use super::scope::{Evaluated, EvaluatedExtent, Scope};
use crate::keyword::Keyword;
use crate::pointer::Location;
use crate::types::TypeSet;

impl<'s> Linter<'s> {
    pub(super) fn reference(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let Some(value @ Value::String(reference)) = schema.get(Keyword::Ref) else { return };
        let at = schema.key("$ref");
        match self.resolver.resolve(scope.base, reference) {
            Err(Unresolved::MetaSchema) => scope.evaluated.properties.merge(EvaluatedExtent::Some),
            Err(reason) => self.unresolved(reference, reason, &at),
            Ok(Target { schema, pointer, base }) => {
                self.targets.entry(address(value)).or_insert_with(|| (schema, at.to_pointer()));
                if !schema.is_object() && !schema.is_boolean() {
                    return self.not_a_schema(reference, schema, &at);
                }
                let target = Location::Pointer(&pointer);
                let known = self.has_references.entry(address(schema));
                scope.evaluated.merge(if *known.or_insert_with(|| contains_reference(schema)) {
                    let evaluated = self.compile(schema, base, &target);
                    self.async_reference(reference, schema, scope, &at);
                    evaluated
                } else {
                    self.same_instance(schema, Scope { types: TypeSet::NONE, ..*scope }, &target)
                });
            }
        }
    }

    fn unresolved(&mut self, reference: &str, reason: Unresolved, at: &Location<'_>) {
        let problem =
            |what| Problem::at_value("schema-unresolved-ref", at, format!("`$ref` `{reference}` {what}"));
        let problem = match reason {
            Unresolved::Loop => problem("only refers back to itself"),
            _ => problem("does not resolve to a schema").help(self.reference_help(reference)),
        };
        self.report.add(problem);
    }

    fn reference_help(&self, reference: &str) -> String {
        if !reference.starts_with('#') {
            return "other documents are not loaded: copy the schema into `$defs`".to_owned();
        }
        let wanted = reference.rsplit('/').next().unwrap_or_default();
        self.resolver.nearest_definition(wanted).map_or_else(
            || "a reference is a pointer from the root of the schema, as in `#/$defs/name`".to_owned(),
            |found| format!("did you mean `{found}`?"),
        )
    }

    /// Ajv accepts numbers and empty values as schemas that allow everything.
    fn not_a_schema(&mut self, reference: &str, target: &Value, at: &Location<'_>) {
        let is_empty_list = target.as_array().is_some_and(Vec::is_empty);
        let is_accepted = target.is_number() || target == "" || is_empty_list;
        if !is_accepted {
            let message = format!("`$ref` `{reference}` resolves to a value that is not a schema");
            self.report.add(Problem::at_value("schema-unresolved-ref", at, message));
        }
    }

    fn async_reference(&mut self, reference: &str, target: &Value, scope: &Scope, at: &Location<'_>) {
        if target.get("$async").is_some_and(is_truthy) && !scope.is_async {
            let message = format!("`$ref` `{reference}` refers to a schema with `$async`");
            self.report.add(Problem::at_value("schema-async", at, message).help("remove `$async` there"));
        }
    }

    pub(super) fn dynamic_reference(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        if schema.has(Keyword::DynamicAnchor) && scope.is_inner {
            self.compile(schema.value, Base::ROOT, schema.location);
        }
        for keyword in [Keyword::DynamicRef, Keyword::RecursiveRef] {
            let Some(Value::String(reference)) = schema.get(keyword) else { continue };
            if !reference.starts_with('#') {
                let name = keyword.name();
                let message = format!("`{name}` must start with `#`, got `{reference}`");
                let problem = Problem::at_value("schema-unresolved-ref", &schema.key(name), message);
                self.report.add(problem.help("name a `$dynamicAnchor` of this schema, as in `#node`"));
            }
            scope.evaluated.merge(Evaluated::both(EvaluatedExtent::Dynamic));
        }
        if schema.get(Keyword::RecursiveAnchor).is_some_and(Value::is_string) {
            let message = "`$recursiveAnchor` is a keyword of an older draft";
            let help = "use `$dynamicAnchor` and `$dynamicRef`";
            self.ignored(&schema.key("$recursiveAnchor"), message, help);
        }
    }
}

/// Whether a schema contains a reference anywhere, even in data: Ajv does not distinguish.
pub(crate) fn contains_reference(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.iter().any(|(name, member)| {
            matches!(
                name.as_str(),
                "$ref" | "$recursiveRef" | "$recursiveAnchor" | "$dynamicRef" | "$dynamicAnchor"
            ) || contains_reference(member)
        }),
        Value::Array(items) => items.iter().any(contains_reference),
        _ => false,
    }
}

#[cfg(test)]
#[path = "lint_reference_tests.rs"]
mod tests;
