//! The keywords for objects: properties and their defaults, `required`, patterns and dependencies.

use serde_json::{Map, Value};

use super::lint_help;
use super::linter::{ChildKind, Linter, SchemaVisit};
use super::problem::Problem;
use super::scope::{EvaluatedExtent, Scope};
use crate::keyword::{Keyword, has_rules};
use crate::pattern::{self, is_valid_without_unicode};
use crate::pointer::{Location, Part};

impl<'s> Linter<'s> {
    pub(super) fn object_group(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        if scope.composite {
            self.ignored_defaults(schema);
        }
        self.required(schema, scope);
        if let Some(names) = schema.get(Keyword::PropertyNames) {
            self.child(names, scope, ChildKind::Name, &schema.key("propertyNames"));
        }
        self.additional_properties(schema, scope);
        self.dependent_schemas(schema, Keyword::Dependencies, scope);
        self.properties(schema, scope);
        self.pattern_properties(schema, scope);
        self.dependent_schemas(schema, Keyword::DependentSchemas, scope);
        if let Some(rest) = schema.get(Keyword::UnevaluatedProperties) {
            if scope.evaluated.properties != EvaluatedExtent::All && rest.is_object() {
                self.child(rest, scope, ChildKind::Value, &schema.key("unevaluatedProperties"));
            }
            scope.evaluated.properties = EvaluatedExtent::All;
        }
    }

    fn ignored_defaults(&mut self, schema: &SchemaVisit<'s, '_>) {
        let list = schema.key("properties");
        let properties = schema.members(Keyword::Properties);
        for (name, _) in properties.filter(|(_, property)| property.get("default").is_some()) {
            let property = list.key(name);
            let message =
                format!("the `default` of `{name}` is never filled in, because its schema may not apply");
            let problem = Problem::at_key("schema-ignored-default", &property.key("default"), message);
            let help = "defaults are filled in outside `anyOf`, `oneOf`, `not`, `if` and `contains` only";
            self.report.add(problem.help(help));
        }
    }

    fn required(&mut self, schema: &SchemaVisit<'s, '_>, scope: &Scope) {
        let list = schema.key("required");
        let properties = schema.get(Keyword::Properties).and_then(Value::as_object);
        let required = schema.get(Keyword::Required).and_then(Value::as_array).into_iter().flatten();
        for (index, name) in required.enumerate() {
            let Some(name) = name.as_str().filter(|_| !self.report.is_full()) else { continue };
            let is_own = properties.is_some_and(|properties| properties.contains_key(name));
            if is_own || self.known_properties.contains(scope.known_properties, name) {
                continue;
            }
            let names = properties.into_iter().flat_map(Map::keys).map(String::as_str);
            let help = lint_help::did_you_mean(name, names)
                .unwrap_or_else(|| format!("add `{name}` to `properties` of the same schema"));
            let message = format!("`required` names `{name}`, which is not in `properties`");
            let problem = Problem::at_value("schema-required-undefined", &list.index(index), message);
            self.report.add(problem.help(help));
        }
    }

    fn additional_properties(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let Some(additional) = schema.get(Keyword::AdditionalProperties) else { return };
        scope.evaluated.properties = EvaluatedExtent::All;
        if has_rules(additional) {
            let list = schema.key("patternProperties");
            for (pattern, _) in schema.members(Keyword::PatternProperties) {
                self.pattern(pattern, &list.key(pattern), Part::Key);
            }
        }
        if additional.is_object() {
            self.child(additional, scope, ChildKind::Value, &schema.key("additionalProperties"));
        }
    }

    fn properties(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let properties = schema.get(Keyword::Properties).and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else { return };
        let list = schema.key("properties");
        self.known_properties.add_all(scope.known_properties, properties);
        scope.evaluated.properties.merge(EvaluatedExtent::Some);
        for (name, schema) in properties {
            let before = scope.known_properties;
            self.child(schema, scope, ChildKind::Value, &list.key(name));
            if scope.known_properties != before {
                self.known_properties.add(scope.known_properties, name);
            }
        }
    }

    fn pattern_properties(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let list = schema.key("patternProperties");
        let patterns = || schema.members(Keyword::PatternProperties);
        let is_used = patterns().any(|(_, schema)| has_rules(schema))
            || (patterns().next().is_some() && scope.evaluated.properties != EvaluatedExtent::All);
        if is_used {
            for (pattern, _) in patterns() {
                if self.pattern(pattern, &list.key(pattern), Part::Key) {
                    self.overlaps(pattern, schema, &list.key(pattern));
                }
            }
            if scope.evaluated.properties != EvaluatedExtent::All {
                scope.evaluated.properties = EvaluatedExtent::Dynamic;
            }
        }
        for (pattern, schema) in patterns() {
            self.child(schema, scope, ChildKind::Value, &list.key(pattern));
        }
    }

    /// Reports declared properties that a pattern also matches.
    fn overlaps(&mut self, pattern: &str, schema: &SchemaVisit<'s, '_>, at: &Location<'_>) {
        if schema.members(Keyword::Properties).next().is_none() {
            return;
        }
        if !is_valid_without_unicode(pattern) {
            let message = format!("pattern `{pattern}` cannot be compared with the names in `properties`");
            let problem = Problem::at_key("schema-bad-pattern", at, message);
            return self.report.add(problem.help("avoid ranges between characters outside the basic plane"));
        }
        // Ajv tests names without the `u` flag, where these escapes do not mean what the author thinks: no match.
        let is_literal = [r"\p", r"\P", r"\u{"].iter().any(|escape| pattern.contains(escape));
        let Some(regex) = pattern::build(pattern).filter(|_| !is_literal) else { return };
        let names = schema.members(Keyword::Properties).map(|(name, _)| name);
        for name in names.filter(|name| regex.is_match(name).unwrap_or(false)) {
            let message = format!("pattern `{pattern}` also matches the property `{name}`");
            let help = "make the pattern stricter, or move the property's schema under the pattern";
            self.report.add(Problem::at_key("schema-overlapping-pattern", at, message).help(help));
        }
    }

    fn dependent_schemas(&mut self, schema: &SchemaVisit<'s, '_>, keyword: Keyword, scope: &mut Scope) {
        let list = schema.key(keyword.name());
        for (name, schema) in schema.members(keyword) {
            scope.evaluated.merge_conditional(self.same_instance(schema, *scope, &list.key(name)));
        }
    }
}

#[cfg(test)]
#[path = "lint_object_tests.rs"]
mod tests;
