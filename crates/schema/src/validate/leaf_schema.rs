//! Leaf schemas: those that constrain scalars only. Most schemas of a tool are leaves, so their validity is decided
//! here without tracking anything; they are visited again only to collect errors.

use serde_json::{Number, Value};

use super::compiled_schema::{Node, NumberRule, Rule, StringRule};
use super::equality::equal;
use crate::number;

impl Node {
    /// Whether the schema has no subschemas, references or keywords for arrays and objects.
    pub fn constrains_scalars_only(&self) -> bool {
        let compares = |rule: &Rule| matches!(rule, Rule::Const(_) | Rule::Enum(_));
        !self.is_false
            && !self.tracks_evaluated
            && self.array.is_none()
            && self.object.is_none()
            && self.any.iter().all(compares)
    }

    /// Whether a leaf accepts a value.
    pub fn leaf_accepts(&self, value: &Value) -> bool {
        let group_accepts = || match value {
            Value::String(text) => self.string.iter().all(|rule| rule.accepts(text)),
            Value::Number(number) => self.number.iter().all(|rule| rule.accepts(number)),
            _ => true,
        };
        (self.types.is_empty() || self.types.accepts(value))
            && group_accepts()
            && self.any.iter().all(|rule| rule.equals(value))
    }
}

impl Rule {
    /// For `const` and `enum`: whether the value is one of the allowed values.
    pub fn equals(&self, value: &Value) -> bool {
        match self {
            Self::Const(allowed) => equal(allowed, value),
            Self::Enum(allowed) => allowed.iter().any(|allowed| equal(allowed, value)),
            _ => false,
        }
    }
}

impl NumberRule {
    pub fn accepts(&self, value: &Number) -> bool {
        match self {
            Self::Bound(bound, limit) => (bound.allows)(number::compare(value, limit)),
            Self::MultipleOf(divisor) => divisor.divides(value),
            Self::Format(_, check) => check(value),
        }
    }
}

impl StringRule {
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Self::MaxLength(_, max) => has_at_most(text, *max),
            Self::MinLength(_, min) => has_at_least(text, *min),
            Self::Pattern(pattern) => pattern.matches(text),
            Self::Format(format) => format.accepts(text),
            Self::FormatBound(bound, format, limit) => {
                format.compare(text, limit).is_none_or(|order| (bound.allows)(order))
            }
        }
    }
}

/// Lengths count code points; the number of bytes often decides without counting.
fn has_at_most(text: &str, limit: usize) -> bool {
    text.len() <= limit || text.chars().count() <= limit
}

fn has_at_least(text: &str, limit: usize) -> bool {
    text.len() >= limit && (text.len() / 4 >= limit || text.chars().count() >= limit)
}
