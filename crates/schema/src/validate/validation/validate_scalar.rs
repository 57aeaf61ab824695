//! Keywords for numbers and strings, and limits on counts.

use serde_json::{Number, Value, json};

use super::super::compiled_schema::{Node, NumberRule, StringRule};
use super::{Mode, Position, Validation};
use crate::format::Format;
use crate::keyword::Keyword;
use crate::number::{ceiling, floor, js_text};

impl Validation<'_> {
    pub(super) fn number<M: Mode>(&mut self, node: &Node, value: &Number, position: Position<'_>) -> bool {
        self.scalar::<M, _>(&node.number, |rule| rule.accepts(value), Self::number_error::<M>, position)
    }

    pub(super) fn string<M: Mode>(&mut self, node: &Node, value: &str, position: Position<'_>) -> bool {
        self.scalar::<M, _>(&node.string, |rule| rule.accepts(value), Self::string_error::<M>, position)
    }

    fn scalar<M: Mode, R>(
        &mut self,
        rules: &[R],
        accepts: impl Fn(&R) -> bool,
        error: fn(&mut Self, &R, Position<'_>) -> bool,
        position: Position<'_>,
    ) -> bool {
        let mut is_valid = true;
        for rule in rules {
            is_valid &= accepts(rule) || error(self, rule, position);
            if !is_valid && !M::COLLECTS {
                return false;
            }
        }
        is_valid
    }

    fn number_error<M: Mode>(&mut self, rule: &NumberRule, position: Position<'_>) -> bool {
        match rule {
            NumberRule::Bound(bound, limit) => self.fail::<M>(position, bound.keyword.name(), || {
                let sign = bound.sign;
                (json!({ "comparison": sign, "limit": limit }), format!("must be {sign} {}", js_text(limit)))
            }),
            NumberRule::MultipleOf(divisor) => self.fail::<M>(position, "multipleOf", || {
                let text = js_text(&divisor.value);
                (json!({ "multipleOf": divisor.value }), format!("must be multiple of {text}"))
            }),
            NumberRule::Format(format) => self.format_error::<M>(format, position),
        }
    }

    fn string_error<M: Mode>(&mut self, rule: &StringRule, position: Position<'_>) -> bool {
        match rule {
            StringRule::MaxLength(limit, _) => {
                self.fail::<M>(position, "maxLength", || count_error("more", limit, "characters"))
            }
            StringRule::MinLength(limit, _) => {
                self.fail::<M>(position, "minLength", || count_error("fewer", limit, "characters"))
            }
            StringRule::Pattern(pattern) => self.fail::<M>(position, "pattern", || {
                let text = &pattern.text;
                (json!({ "pattern": text }), format!("must match pattern \"{text}\""))
            }),
            StringRule::Format(format) => self.format_error::<M>(format, position),
            StringRule::FormatBound(bound, _, limit) => {
                self.fail::<M>(position, bound.format_keyword.name(), || {
                    let sign = bound.sign;
                    (json!({ "comparison": sign, "limit": limit }), format!("should be {sign} {limit}"))
                })
            }
        }
    }

    fn format_error<M: Mode>(&mut self, format: &Format, position: Position<'_>) -> bool {
        self.fail::<M>(position, "format", || {
            let name = format.name;
            (json!({ "format": name }), format!("must match format \"{name}\""))
        })
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
            is_valid = self.fail::<M>(position, max_keyword.name(), || count_error("more", limit, noun));
        }
        if let Some(limit) = min.filter(|limit| count < ceiling(limit)) {
            is_valid = self.fail::<M>(position, min_keyword.name(), || count_error("fewer", limit, noun));
        }
        is_valid
    }
}

/// Parameters and message of a violated limit on a count.
fn count_error(than: &str, limit: &Number, noun: &str) -> (Value, String) {
    (json!({ "limit": limit }), format!("must NOT have {than} than {} {noun}", js_text(limit)))
}
