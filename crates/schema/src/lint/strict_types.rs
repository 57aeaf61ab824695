//! Ajv's `strictTypes`: union types, types that the enclosing schema excludes, and keywords whose type is not declared.

use serde_json::Value;

use super::lint_help;
use super::linter::{Linter, SchemaVisit};
use super::problem::Problem;
use super::scope::Scope;
use crate::keyword::{Keyword, Keywords};
use crate::types::TypeSet;

impl TypeSet {
    /// The types that a `type` keyword declares; unknown names, which the meta-schema refuses, are skipped.
    fn from_type_keyword(keywords: &Keywords<'_>) -> Self {
        let names = keywords.type_names();
        names
            .iter()
            .filter_map(Value::as_str)
            .fold(Self::NONE, |types, name| types.with(Self::from_name(name)))
    }

    /// With `integer` if `number` is included.
    const fn with_integer(self) -> Self {
        if self.intersects(Self::NUMBER) { self.with(Self::INTEGER) } else { self }
    }

    /// Whether a keyword for `wanted` can apply to these types.
    const fn overlaps(self, wanted: Self) -> bool {
        self.intersects(wanted) || (wanted.intersects(Self::NUMBER) && self.intersects(Self::INTEGER))
    }

    /// The types that remain when `inner` is required too.
    const fn intersection(self, inner: Self) -> Self {
        let excluded = Self::ALL.without(inner.with_integer());
        let integer_of_number = self.intersects(Self::NUMBER)
            && !inner.intersects(Self::NUMBER)
            && inner.intersects(Self::INTEGER);
        let remaining = self.without(excluded);
        if integer_of_number { remaining.with(Self::INTEGER) } else { remaining }
    }

    /// For messages: `string or number`.
    fn to_words(self) -> String {
        lint_help::either(self.names())
    }
}

impl<'s> Linter<'s> {
    /// `type` and `nullable` together, as Ajv's `getSchemaTypes` reads them.
    pub(super) fn own_types(&mut self, schema: &SchemaVisit<'s, '_>) -> TypeSet {
        let types = TypeSet::from_type_keyword(&schema.keywords);
        let Some(value) = schema.get(Keyword::Nullable) else { return types };
        let at = schema.key("nullable");
        let Some(nullable) = value.as_bool() else {
            self.report.wrong(&at, "nullable", "true or false", value);
            return types;
        };
        let message = if types.intersects(TypeSet::NULL) {
            (!nullable).then_some("`nullable` is false, but `type` allows null")
        } else {
            types.is_empty().then_some("`nullable` has no effect without `type`")
        };
        if let Some(message) = message {
            let help = "remove `nullable` and list the types: `\"type\": [\"string\", \"null\"]`";
            self.report.add(Problem::at_key("schema-nullable", &at, message).help(help));
        }
        if nullable && !types.is_empty() { types.with(TypeSet::NULL) } else { types }
    }

    pub(super) fn strict_types(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope, own: TypeSet) {
        if !own.is_empty() {
            self.context_types(schema, scope, own);
        }
        if own.is_union() {
            let message = format!("`type` must not be a union of types, got {}", own.to_words());
            let help =
                "split it into `anyOf` with one type each, or choose one type (one type and null is allowed)";
            let problem = Problem::at_value("schema-union-type", &schema.key("type"), message);
            self.report.add(problem.help(help));
        }
        for keyword in schema.keywords.rules() {
            let wanted = keyword.types();
            if !wanted.is_empty() && !scope.types.overlaps(wanted) {
                self.missing_type(schema, keyword, scope.types);
            }
        }
    }

    fn context_types(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope, own: TypeSet) {
        if scope.types.is_empty() {
            scope.types = own;
            return;
        }
        let excluded = own.without(scope.types.with_integer());
        if !excluded.is_empty() {
            let (excluded, allowed) = (excluded.to_words(), scope.types.to_words());
            let message =
                format!("`type` {excluded} is excluded by the enclosing schema, which allows {allowed}");
            let code = "schema-type-not-allowed-by-context";
            let help = "add this type to the enclosing schema, or change this one";
            self.report.add(Problem::at_value(code, &schema.key("type"), message).help(help));
        }
        scope.types = scope.types.intersection(own);
    }

    fn missing_type(&mut self, schema: &SchemaVisit<'s, '_>, keyword: Keyword, types: TypeSet) {
        let (name, wanted) = (keyword.name(), keyword.types());
        let (message, help) = if types.is_empty() {
            let suggestion = wanted.names().last().unwrap_or("string");
            (
                format!("`{name}` needs a `type` beside it: {}", wanted.to_words()),
                format!("add `\"type\": \"{suggestion}\"`"),
            )
        } else {
            (
                format!("`{name}` applies to {}, but `type` is {}", wanted.to_words(), types.to_words()),
                format!("remove `{name}` or change `type`"),
            )
        };
        self.report.add(Problem::at_key("schema-missing-type", &schema.key(name), message).help(help));
    }
}

#[cfg(test)]
#[path = "strict_types_tests.rs"]
mod tests;
