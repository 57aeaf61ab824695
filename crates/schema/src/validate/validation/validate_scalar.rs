//! Keywords for numbers and strings, and limits on counts.

use serde_json::{Number, json};

use super::super::compiled_schema::{NumberRule, StringRule};
use super::{Mode, Position, Validation, Violation};
use crate::format::Format;
use crate::keyword::Keyword;
use crate::number::{ceiling, floor, js_text};

impl Validation<'_> {
    /// Applies the rules for a number or a string.
    pub(super) fn scalar<M: Mode, R>(
        &mut self,
        rules: &[R],
        accepts: impl Fn(&R) -> bool,
        violation: fn(&R) -> Violation,
        position: Position<'_>,
    ) -> bool {
        M::all(rules.iter(), |rule| accepts(rule) || self.fail::<M>(position, || violation(rule)))
    }

    /// Limits on the number of items or properties: the maximum, then the minimum.
    pub(super) fn count<M: Mode>(
        &mut self,
        count: usize,
        noun: &str,
        (max_keyword, max): (Keyword, Option<&Number>),
        (min_keyword, min): (Keyword, Option<&Number>),
        position: Position<'_>,
    ) -> bool {
        let mut is_valid = true;
        if let Some(limit) = max.filter(|limit| count > floor(limit)) {
            is_valid = self.fail::<M>(position, || count_violation(max_keyword, "more", limit, noun));
        }
        if let Some(limit) = min.filter(|limit| count < ceiling(limit)) {
            is_valid = self.fail::<M>(position, || count_violation(min_keyword, "fewer", limit, noun));
        }
        is_valid
    }
}

impl NumberRule {
    pub(super) fn violation(&self) -> Violation {
        match self {
            Self::Bound(bound, limit) => {
                let (sign, text) = (bound.sign, js_text(limit));
                let params = json!({ "comparison": sign, "limit": limit });
                (bound.keyword.name(), params, format!("must be {sign} {text}"))
            }
            Self::MultipleOf(divisor) => {
                let message = format!("must be multiple of {}", js_text(&divisor.value));
                ("multipleOf", json!({ "multipleOf": divisor.value }), message)
            }
            Self::Format(format, _) => format_violation(format),
        }
    }
}

impl StringRule {
    pub(super) fn violation(&self) -> Violation {
        match self {
            Self::MaxLength(limit, _) => count_violation(Keyword::MaxLength, "more", limit, "characters"),
            Self::MinLength(limit, _) => count_violation(Keyword::MinLength, "fewer", limit, "characters"),
            Self::Pattern(pattern) => {
                let text = &pattern.text;
                ("pattern", json!({ "pattern": text }), format!("must match pattern \"{text}\""))
            }
            Self::Format(format) => format_violation(format),
            Self::FormatBound(bound, _, limit) => {
                let sign = bound.sign;
                let params = json!({ "comparison": sign, "limit": limit });
                (bound.format_keyword.name(), params, format!("should be {sign} {limit}"))
            }
        }
    }
}

fn format_violation(format: &Format) -> Violation {
    let name = format.name;
    ("format", json!({ "format": name }), format!("must match format \"{name}\""))
}

/// A violated limit on a count.
fn count_violation(keyword: Keyword, than: &str, limit: &Number, noun: &str) -> Violation {
    let message = format!("must NOT have {than} than {} {noun}", js_text(limit));
    (keyword.name(), json!({ "limit": limit }), message)
}
