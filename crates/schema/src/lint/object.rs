//! The keywords for objects: properties and their defaults, `required`, patterns and dependencies.

use serde_json::{Map, Value};

use super::evaluated::Seen;
use super::keyword::{Keyword, Node, has_rules};
use super::pattern::{Matcher, is_valid_without_unicode};
use super::problem::{Part, Path};
use super::suggest;
use super::types::Types;
use super::walk::{Child, Linter, Scope};

impl<'s> Linter<'s> {
    pub(super) fn object_group(&mut self, node: &Node<'s>, scope: &mut Scope, path: &Path<'_>) {
        let properties = node.get(Keyword::Properties).and_then(Value::as_object);
        if let Some(properties) = properties.filter(|_| scope.composite) {
            self.ignored_defaults(properties, path);
        }
        if let Some(Value::Array(required)) = node.get(Keyword::Required) {
            self.required(required, properties, *scope, path);
        }
        if let Some(names) = node.get(Keyword::PropertyNames) {
            let child = Child { types: Types::STRING, composite: true };
            self.child(names, scope, child, &path.key("propertyNames"));
        }
        self.additional(node, scope, path);
        if let Some(Value::Object(dependencies)) = node.get(Keyword::Dependencies) {
            self.dependents(dependencies, scope, &path.key("dependencies"));
        }
        if let Some(properties) = properties {
            self.properties(properties, scope, &path.key("properties"));
        }
        if let Some(Value::Object(patterns)) = node.get(Keyword::PatternProperties) {
            self.pattern_properties(patterns, properties, scope, &path.key("patternProperties"));
        }
        if let Some(Value::Object(dependents)) = node.get(Keyword::DependentSchemas) {
            self.dependents(dependents, scope, &path.key("dependentSchemas"));
        }
        if let Some(rest) = node.get(Keyword::UnevaluatedProperties) {
            if scope.evaluated.properties != Seen::All && rest.is_object() {
                self.child(rest, scope, Child::PLAIN, &path.key("unevaluatedProperties"));
            }
            scope.evaluated.properties = Seen::All;
        }
    }

    fn ignored_defaults(&mut self, properties: &'s Map<String, Value>, path: &Path<'_>) {
        let list = path.key("properties");
        for (name, schema) in properties {
            if schema.get("default").is_some() {
                let property = list.key(name);
                let message =
                    format!("the default of `{name}` is never filled in here: the schema may not apply");
                let help = Some(
                    "defaults work outside `anyOf`, `oneOf`, `not`, `if` and `contains` only".to_owned(),
                );
                self.report.add("schema-ignored-default", &property.key("default"), Part::Key, message, help);
            }
        }
    }

    fn required(
        &mut self,
        required: &'s [Value],
        properties: Option<&'s Map<String, Value>>,
        scope: Scope,
        path: &Path<'_>,
    ) {
        let list = path.key("required");
        for (index, name) in required.iter().enumerate() {
            let Some(name) = name.as_str().filter(|_| !self.report.is_full()) else { continue };
            let own = properties.is_some_and(|properties| properties.contains_key(name));
            if own || self.defined.has(scope.defined, name) {
                continue;
            }
            let near = properties
                .and_then(|properties| suggest::did_you_mean(name, properties.keys().map(String::as_str)));
            let help = near.or_else(|| Some(format!("add `{name}` to `properties` of this same schema")));
            let message = format!("required property `{name}` is not in `properties`");
            self.report.add("schema-required-undefined", &list.index(index), Part::Value, message, help);
        }
    }

    fn additional(&mut self, node: &Node<'s>, scope: &mut Scope, path: &Path<'_>) {
        let Some(additional) = node.get(Keyword::AdditionalProperties) else {
            return;
        };
        scope.evaluated.properties = Seen::All;
        if has_rules(additional)
            && let Some(Value::Object(patterns)) = node.get(Keyword::PatternProperties)
        {
            let list = path.key("patternProperties");
            for pattern in patterns.keys() {
                self.pattern(pattern, &list.key(pattern), Part::Key);
            }
        }
        if additional.is_object() {
            self.child(additional, scope, Child::PLAIN, &path.key("additionalProperties"));
        }
    }

    fn properties(&mut self, properties: &'s Map<String, Value>, scope: &mut Scope, list: &Path<'_>) {
        if properties.is_empty() {
            return;
        }
        self.defined.add_all(scope.defined, properties);
        scope.evaluated.properties.merge(Seen::Some);
        for (name, schema) in properties {
            let before = scope.defined;
            self.child(schema, scope, Child::PLAIN, &list.key(name));
            if scope.defined != before {
                self.defined.add(scope.defined, name);
            }
        }
    }

    fn pattern_properties(
        &mut self,
        patterns: &'s Map<String, Value>,
        properties: Option<&'s Map<String, Value>>,
        scope: &mut Scope,
        list: &Path<'_>,
    ) {
        let idle = !patterns.values().any(has_rules) && scope.evaluated.properties == Seen::All;
        if !patterns.is_empty() && !idle {
            for pattern in patterns.keys() {
                if self.pattern(pattern, &list.key(pattern), Part::Key) {
                    self.overlaps(pattern, properties, list);
                }
            }
            if scope.evaluated.properties != Seen::All {
                scope.evaluated.properties = Seen::Dynamic;
            }
        }
        for (pattern, schema) in patterns {
            self.child(schema, scope, Child::PLAIN, &list.key(pattern));
        }
    }

    fn overlaps(&mut self, pattern: &'s str, properties: Option<&'s Map<String, Value>>, list: &Path<'_>) {
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return;
        };
        if !is_valid_without_unicode(pattern) {
            let message = format!("`{pattern}` cannot be compared with the names in `properties`");
            let help = Some("avoid ranges between characters outside the basic plane".to_owned());
            return self.report.add("schema-bad-pattern", &list.key(pattern), Part::Key, message, help);
        }
        let matcher = Matcher::new(pattern);
        for name in properties.keys().filter(|name| matcher.takes(name)) {
            let message = format!("pattern `{pattern}` also takes the property `{name}`");
            let help =
                Some("make the pattern stricter, or move the property's schema under the pattern".to_owned());
            self.report.add("schema-overlapping-pattern", &list.key(pattern), Part::Key, message, help);
        }
    }

    fn dependents(&mut self, dependents: &'s Map<String, Value>, scope: &mut Scope, list: &Path<'_>) {
        for (name, schema) in dependents {
            if let Some(evaluated) = self.same(schema, *scope, &list.key(name)) {
                scope.evaluated.merge_if(evaluated);
            }
        }
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
