//! The keywords for arrays: tuples, items, `contains` and what is left unevaluated.

use serde_json::Value;

use super::evaluated::Seen;
use super::keyword::{Keyword, Node, has_rules};
use super::problem::{Part, Path};
use super::walk::{Child, Linter, Scope};

impl<'s> Linter<'s> {
    pub(super) fn array_group(&mut self, node: &Node<'s>, scope: &mut Scope, path: &Path<'_>) {
        if let Some(Value::Array(tuple)) = node.get(Keyword::PrefixItems) {
            self.tuple(node, tuple, scope, path);
        }
        if let Some(items) = node.get(Keyword::Items) {
            scope.evaluated.items = Seen::All;
            // `items: false` after a tuple is a length check, not a schema to go into.
            if !(node.has(Keyword::PrefixItems) && items.is_boolean()) {
                self.child(items, scope, Child::PLAIN, &path.key("items"));
            }
        }
        self.contains(node, scope, path);
        if let Some(rest) = node.get(Keyword::UnevaluatedItems)
            && scope.evaluated.items != Seen::All
        {
            if rest.is_object() {
                self.child(rest, scope, Child::PLAIN, &path.key("unevaluatedItems"));
            }
            scope.evaluated.items = Seen::All;
        }
    }

    fn tuple(&mut self, node: &Node<'s>, tuple: &'s [Value], scope: &mut Scope, path: &Path<'_>) {
        let at = path.key("prefixItems");
        let fixed = |keyword| node.get(keyword).and_then(Value::as_f64) == length(tuple);
        let closed = fixed(Keyword::MaxItems) || node.get(Keyword::Items) == Some(&Value::Bool(false));
        if !(fixed(Keyword::MinItems) && closed) {
            let count = tuple.len();
            let message = format!("the tuple has {count} items, but its length is not fixed to {count}");
            let help = Some(format!("add `\"minItems\": {count}` and `\"items\": false`"));
            self.report.add("schema-loose-tuple", &at, Part::Key, message, help);
        }
        if !tuple.is_empty() {
            scope.evaluated.items.merge(Seen::Some);
        }
        for (index, schema) in tuple.iter().enumerate() {
            self.child(schema, scope, Child::PLAIN, &at.index(index));
        }
    }

    fn contains(&mut self, node: &Node<'s>, scope: &mut Scope, path: &Path<'_>) {
        let Some(contains) = node.get(Keyword::Contains) else {
            for keyword in [Keyword::MaxContains, Keyword::MinContains] {
                if node.has(keyword) {
                    let message = format!("`{}` without `contains` is ignored", keyword.name());
                    self.ignored(&path.key(keyword.name()), message, "add `contains`");
                }
            }
            return;
        };
        let fewest = node.get(Keyword::MinContains).map_or(Some(1.0), Value::as_f64);
        let most = node.get(Keyword::MaxContains).and_then(Value::as_f64);
        match (fewest, most) {
            (Some(0.0), None) => {
                let message =
                    "`contains` is ignored when `minContains` is 0 and there is no `maxContains`".to_owned();
                return self.ignored(
                    &path.key("minContains"),
                    message,
                    "remove `contains`, or demand at least one",
                );
            }
            (Some(fewest), Some(most)) if fewest > most => {
                let at = if node.has(Keyword::MinContains) { "minContains" } else { "maxContains" };
                let message = "`minContains` is above `maxContains`, so no array is valid".to_owned();
                return self.report.add("schema-never-valid", &path.key(at), Part::Value, message, None);
            }
            _ => {}
        }
        if has_rules(contains) {
            scope.evaluated.items = Seen::All;
        }
        self.child(contains, scope, Child::COMPOSITE, &path.key("contains"));
    }
}

/// Lengths are compared as JSON numbers, in which 2 and 2.0 are one.
fn length(tuple: &[Value]) -> Option<f64> {
    u32::try_from(tuple.len()).ok().map(f64::from)
}

#[cfg(test)]
#[path = "array_tests.rs"]
mod tests;
