//! Sets of JSON types, as `type` declares them and as values have them.

use serde_json::Value;

use crate::number;

/// A bit for each type. The bits are in the order of Ajv's rule groups, which decides the order of errors.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeSet(u8);

/// All types by name, in the order in which messages list them.
pub const TYPES: [(&str, TypeSet); 7] = [
    ("string", TypeSet::STRING),
    ("number", TypeSet::NUMBER),
    ("integer", TypeSet::INTEGER),
    ("boolean", TypeSet::BOOLEAN),
    ("null", TypeSet::NULL),
    ("object", TypeSet::OBJECT),
    ("array", TypeSet::ARRAY),
];

impl TypeSet {
    pub const NONE: Self = Self(0);
    pub const NULL: Self = Self(1);
    pub const BOOLEAN: Self = Self(2);
    pub const INTEGER: Self = Self(4);
    pub const NUMBER: Self = Self(8);
    pub const STRING: Self = Self(16);
    pub const ARRAY: Self = Self(32);
    pub const OBJECT: Self = Self(64);
    pub const NUMBER_OR_STRING: Self = Self::NUMBER.with(Self::STRING);
    pub const ALL: Self = Self(u8::MAX);

    /// Empty for a name that is no type.
    pub fn from_name(name: &str) -> Self {
        TYPES.iter().find(|(known, _)| *known == name).map_or(Self::NONE, |(_, found)| *found)
    }

    /// The type of a value; integers count as numbers.
    pub const fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// More than one type, not counting `null`.
    pub const fn is_union(self) -> bool {
        self.without(Self::NULL).0.count_ones() > 1
    }

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a value has one of these types.
    pub fn accepts(self, value: &Value) -> bool {
        self.intersects(Self::of_value(value))
            || (self.intersects(Self::INTEGER) && value.as_number().is_some_and(number::is_integer))
    }

    pub const fn is_scalar(self) -> bool {
        !self.is_empty() && !self.intersects(Self::ARRAY.with(Self::OBJECT))
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        TYPES.into_iter().filter(move |(_, one)| self.intersects(*one)).map(|(name, _)| name)
    }
}
