//! `$ref` and its dynamic kin. Ajv writes a target without references of its own into the place of
//! the reference, context and all; any other target is compiled as a function of its own.

use serde_json::Value;

use super::evaluated::{Evaluated, Seen};
use super::keyword::{Keyword, Node};
use super::problem::{Part, Path};
use super::refs::{Base, Missing, Target};
use super::types::Types;
use super::walk::{Linter, Position, Scope, address, is_truthy};

impl<'s> Linter<'s> {
    pub(super) fn reference(&mut self, node: &Node<'s>, scope: &mut Scope, path: &Path<'_>) {
        let Some(value @ Value::String(reference)) = node.get(Keyword::Ref) else {
            return;
        };
        let at = path.key("$ref");
        match self.refs.resolve(scope.base, reference) {
            Err(missing) => self.unresolved(reference, missing, &at),
            Ok(Target::MetaSchema) => scope.evaluated.properties.merge(Seen::Some),
            Ok(Target::Schema { schema, pointer, base }) => {
                self.targets.insert(address(value), schema);
                if !schema.is_object() && !schema.is_boolean() {
                    return self.not_a_schema(reference, schema, &at);
                }
                let target = Path::At(&pointer);
                if self.refers(schema) {
                    let evaluated = self.compile(schema, base, &target);
                    self.async_call(schema, scope, &at);
                    scope.evaluated.merge(evaluated);
                } else if let Some(evaluated) =
                    self.same(schema, Scope { types: Types::NONE, ..*scope }, &target)
                {
                    scope.evaluated.merge(evaluated);
                }
            }
        }
    }

    fn unresolved(&mut self, reference: &str, missing: Missing, at: &Path<'_>) {
        let (message, help) = match missing {
            Missing::Loop => (format!("`{reference}` only leads back to itself"), None),
            Missing::NotFound => {
                (format!("`{reference}` leads nowhere"), Some(self.reference_help(reference)))
            }
        };
        self.report.add("schema-unresolved-ref", at, Part::Value, message, help);
    }

    fn reference_help(&self, reference: &str) -> String {
        if !reference.starts_with('#') {
            return "other documents are not loaded: copy the schema into `$defs`".to_owned();
        }
        let wanted = reference.rsplit('/').next().unwrap_or_default();
        self.refs.nearest_definition(wanted).map_or_else(
            || "a reference is a pointer from the top of the schema, as in `#/$defs/name`".to_owned(),
            |found| format!("did you mean `{found}`?"),
        )
    }

    /// Ajv takes numbers and empty values for schemas that allow everything.
    fn not_a_schema(&mut self, reference: &str, target: &Value, at: &Path<'_>) {
        let harmless = match target {
            Value::Number(_) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if !harmless {
            let message = format!("`{reference}` leads to something that is not a schema");
            self.report.add("schema-unresolved-ref", at, Part::Value, message, None);
        }
    }

    fn async_call(&mut self, target: &Value, scope: &Scope, at: &Path<'_>) {
        if target.get("$async").is_some_and(is_truthy) && !scope.is_async {
            let message = "a reference to an asynchronous schema".to_owned();
            self.report.add(
                "schema-async",
                at,
                Part::Value,
                message,
                Some("remove `$async` there".to_owned()),
            );
        }
    }

    /// Whether a schema holds a reference anywhere, even in data.
    fn refers(&mut self, schema: &Value) -> bool {
        let key = address(schema);
        if let Some(known) = self.referring.get(&key) {
            return *known;
        }
        let refers = holds_reference(schema);
        self.referring.insert(key, refers);
        refers
    }

    pub(super) fn dynamic(&mut self, node: &Node<'s>, scope: &mut Scope, schema: &'s Value, path: &Path<'_>) {
        if node.has(Keyword::DynamicAnchor) && scope.root == Position::Inner {
            self.compile(schema, Base::ROOT, path);
        }
        for keyword in [Keyword::DynamicRef, Keyword::RecursiveRef] {
            let Some(Value::String(reference)) = node.get(keyword) else {
                continue;
            };
            if !reference.starts_with('#') {
                let name = keyword.name();
                let message = format!("`{name}` must start with `#`");
                let help = Some("name a `$dynamicAnchor` of this schema, as in `#node`".to_owned());
                self.report.add("schema-unresolved-ref", &path.key(name), Part::Value, message, help);
            }
            scope.evaluated.merge(Evaluated::both(Seen::Dynamic));
        }
        if node.get(Keyword::RecursiveAnchor).is_some_and(Value::is_string) {
            let message = "`$recursiveAnchor` is from an older draft".to_owned();
            let help = Some("use `$dynamicAnchor` and `$dynamicRef`".to_owned());
            self.report.add(
                "schema-ignored-keyword",
                &path.key("$recursiveAnchor"),
                Part::Key,
                message,
                help,
            );
        }
    }
}

/// Whether a schema holds a reference anywhere, even in data: Ajv does not look closer.
pub(crate) fn holds_reference(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.iter().any(|(name, member)| {
            matches!(
                name.as_str(),
                "$ref" | "$recursiveRef" | "$recursiveAnchor" | "$dynamicRef" | "$dynamicAnchor"
            ) || holds_reference(member)
        }),
        Value::Array(items) => items.iter().any(holds_reference),
        _ => false,
    }
}
