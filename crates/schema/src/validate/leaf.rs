//! Schemas that look at one scalar and nothing below it. Most schemas of a tool are such, so whether they hold is
//! decided here with nothing to keep track of; only when they do not is it worth to walk them for the errors.

use serde_json::{Number, Value};

use crate::validate::equal::equal;
use crate::validate::node::{Node, OfNumber, OfString, Rule, Types};
use crate::validate::number;

impl Node {
    /// Whether the schema has no parts, references or applicators.
    pub fn has_no_parts(&self) -> bool {
        let is_value = |rule: &Rule| matches!(rule, Rule::Const(_) | Rule::Enum(_) | Rule::Words(_));
        !self.never
            && !self.tracks
            && self.array.is_none()
            && self.object.is_none()
            && self.any.iter().all(is_value)
    }

    /// For a schema without parts: whether it holds.
    pub fn leaf_holds(&self, value: &Value) -> bool {
        let takes = |kind: u8| self.types.0 == 0 || self.types.0 & kind != 0;
        let group_holds = match value {
            Value::String(text) => takes(Types::STRING) && self.string.iter().all(|rule| rule.holds(text)),
            Value::Number(number) => {
                (takes(Types::NUMBER) || (takes(Types::INTEGER) && number::is_integer(number)))
                    && self.number.iter().all(|rule| rule.holds(number))
            }
            other => takes(Types::of(other)),
        };
        group_holds && self.any.iter().all(|rule| rule.takes(value))
    }
}

impl Rule {
    /// For rules that compare with given values.
    pub fn takes(&self, value: &Value) -> bool {
        match self {
            Self::Words(words) => {
                value.as_str().is_some_and(|value| words.iter().any(|word| **word == *value))
            }
            Self::Const(wanted) => equal(wanted, value),
            Self::Enum(values) => values.iter().any(|wanted| equal(wanted, value)),
            _ => false,
        }
    }
}

impl OfNumber {
    pub fn holds(&self, value: &Number) -> bool {
        match self {
            Self::Bound(bound, limit) => bound.allows(number::compare(value, limit)),
            Self::MultipleOf(multiple) => multiple.divides(value),
            Self::Format(format) => format.takes_number(value),
        }
    }
}

impl OfString {
    pub fn holds(&self, text: &str) -> bool {
        match self {
            Self::MaxLength(_, most) => is_at_most(text, *most),
            Self::MinLength(_, least) => is_at_least(text, *least),
            Self::Pattern(pattern) => pattern.matches(text),
            Self::Format(format) => format.takes(text),
            Self::FormatBound(bound, format, limit) => {
                format.order(text, limit).is_none_or(|order| bound.allows(order))
            }
        }
    }
}

/// Lengths count code points; bytes often settle it without counting.
fn is_at_most(text: &str, limit: usize) -> bool {
    text.len() <= limit || text.chars().count() <= limit
}

fn is_at_least(text: &str, limit: usize) -> bool {
    text.len() >= limit && (text.len() / 4 >= limit || text.chars().count() >= limit)
}
