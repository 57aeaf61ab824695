//! JSON types as a small set, and the strictTypes checks: union types, types the context does not
//! allow, and keywords whose type is not declared.

use serde_json::Value;

use super::keyword::{Keyword, Node};
use super::problem::{Part, Path};
use super::suggest;
use super::walk::{Linter, Scope};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Types(u8);

pub const NAMES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "object", "array"];

impl Types {
    pub const NONE: Self = Self(0);
    pub const STRING: Self = Self(1);
    pub const NUMBER: Self = Self(2);
    pub const INTEGER: Self = Self(4);
    pub const BOOLEAN: Self = Self(8);
    pub const NULL: Self = Self(16);
    pub const OBJECT: Self = Self(32);
    pub const ARRAY: Self = Self(64);
    pub const NUMBER_OR_STRING: Self = Self(3);

    pub fn of(name: &str) -> Self {
        match name {
            "string" => Self::STRING,
            "number" => Self::NUMBER,
            "integer" => Self::INTEGER,
            "boolean" => Self::BOOLEAN,
            "null" => Self::NULL,
            "object" => Self::OBJECT,
            "array" => Self::ARRAY,
            _ => Self::NONE,
        }
    }

    /// The declared types of a `type` keyword; names the meta-schema refuses count for nothing.
    pub fn declared(value: Option<&Value>) -> Self {
        match value {
            Some(Value::String(name)) => Self::of(name),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(Self::NONE, |types, name| types.with(Self::of(name))),
            _ => Self::NONE,
        }
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// `number` takes in `integer`.
    const fn widened(self) -> Self {
        if self.meets(Self::NUMBER) { self.with(Self::INTEGER) } else { self }
    }

    /// Whether a keyword for `wanted` can apply to these types.
    const fn suits(self, wanted: Self) -> bool {
        self.meets(wanted) || (wanted.meets(Self::NUMBER) && self.meets(Self::INTEGER))
    }

    /// What is left of these types when `inner` is demanded too.
    const fn narrowed(self, inner: Self) -> Self {
        let kept = Self(self.0 & inner.widened().0);
        let integer_of_number =
            self.meets(Self::NUMBER) && !inner.meets(Self::NUMBER) && inner.meets(Self::INTEGER);
        if integer_of_number { kept.with(Self::INTEGER) } else { kept }
    }

    /// More than one type, `null` apart.
    const fn is_union(self) -> bool {
        let count = self.0.count_ones();
        count > 1 && !(count == 2 && self.meets(Self::NULL))
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |name| self.meets(Self::of(name)))
    }
}

impl<'s> Linter<'s> {
    /// `type` and `nullable` together, as Ajv's `getSchemaTypes` reads them.
    pub(super) fn own_types(&mut self, node: &Node<'s>, path: &Path<'_>) -> Types {
        let types = Types::declared(node.get(Keyword::Type));
        let Some(nullable) = node.get(Keyword::Nullable) else {
            return types;
        };
        let at = path.key("nullable");
        let Some(nullable) = nullable.as_bool() else {
            self.report.invalid(&at, "`nullable` must be true or false");
            return types;
        };
        let message = if types.meets(Types::NULL) {
            (!nullable).then_some("`nullable` is false, but `type` allows null")
        } else {
            types.is_empty().then_some("`nullable` without `type` means nothing")
        };
        if let Some(message) = message {
            let help = "leave `nullable` out and write the types: `\"type\": [\"string\", \"null\"]`";
            self.report.add("schema-nullable", &at, Part::Key, message.to_owned(), Some(help.to_owned()));
        }
        if nullable && !types.is_empty() { types.with(Types::NULL) } else { types }
    }

    pub(super) fn strict_types(&mut self, node: &Node<'s>, scope: &mut Scope, own: Types, path: &Path<'_>) {
        if !own.is_empty() {
            self.context_types(scope, own, path);
        }
        if own.is_union() {
            let help =
                "split it into `anyOf` with one type each, or choose one type (a type beside null is fine)";
            let message = format!("a union of types is not allowed: {}", listed(own));
            self.report.add(
                "schema-union-type",
                &path.key("type"),
                Part::Value,
                message,
                Some(help.to_owned()),
            );
        }
        for keyword in node.keywords() {
            let wanted = keyword.types();
            if !wanted.is_empty() && !scope.types.suits(wanted) {
                self.missing_type(keyword, scope.types, path);
            }
        }
    }

    fn context_types(&mut self, scope: &mut Scope, own: Types, path: &Path<'_>) {
        if scope.types.is_empty() {
            scope.types = own;
            return;
        }
        let strange = own.without(scope.types.widened());
        if !strange.is_empty() {
            let message = format!(
                "type {} is not allowed here: the enclosing schema says {}",
                listed(strange),
                listed(scope.types)
            );
            let help = "give the enclosing schema this type too, or correct this one";
            let code = "schema-type-not-allowed-by-context";

            self.report.add(code, &path.key("type"), Part::Value, message, Some(help.to_owned()));
        }
        scope.types = scope.types.narrowed(own);
    }

    fn missing_type(&mut self, keyword: Keyword, types: Types, path: &Path<'_>) {
        let wanted = keyword.types();
        let name = keyword.name();
        let message = if types.is_empty() {
            format!("`{name}` needs a `type` beside it: {}", listed(wanted))
        } else {
            format!("`{name}` is for {}, but the type here is {}", listed(wanted), listed(types))
        };
        let suggestion = wanted.names().last().unwrap_or("string");
        let help = if types.is_empty() {
            format!("add `\"type\": \"{suggestion}\"`")
        } else {
            format!("remove `{name}` or change `type`")
        };
        self.report.add("schema-missing-type", &path.key(name), Part::Key, message, Some(help));
    }
}

fn listed(types: Types) -> String {
    suggest::either(types.names())
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
