//! Keywords for numbers and strings.

use serde_json::{Number, Value, json};

use super::{Mode, Run};
use crate::schema::validate::bound::Bound;
use crate::schema::validate::format::Format;
use crate::schema::validate::node::{Id, OfNumber, OfString};
use crate::schema::validate::number::{self, js_text};
use crate::schema::validate::path::At;

impl Run<'_> {
    #[inline(never)]
    pub(super) fn number<M: Mode>(
        &mut self,
        id: Id,
        rules: &[OfNumber],
        value: &Number,
        at: &At<'_>,
    ) -> bool {
        let mut valid = true;
        for rule in rules {
            valid &= match rule {
                OfNumber::Bound(bound, limit) => {
                    bound.allows(number::compare(value, limit))
                        || self.out_of_bounds::<M>(id, *bound, limit, at)
                }
                OfNumber::MultipleOf(multiple) => {
                    multiple.divides(value)
                        || self.fail::<M>(id, at, "multipleOf", || {
                            let text = js_text(&multiple.value);
                            (json!({ "multipleOf": multiple.value }), format!("must be multiple of {text}"))
                        })
                }
                OfNumber::Format(format) => {
                    format.takes_number(value) || self.wrong_format::<M>(id, *format, at)
                }
            };
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    fn out_of_bounds<M: Mode>(&mut self, id: Id, bound: Bound, limit: &Number, at: &At<'_>) -> bool {
        self.fail::<M>(id, at, bound.keyword(), || {
            let sign = bound.sign();
            (json!({ "comparison": sign, "limit": limit }), format!("must be {sign} {}", js_text(limit)))
        })
    }

    fn wrong_format<M: Mode>(&mut self, id: Id, format: Format, at: &At<'_>) -> bool {
        self.fail::<M>(id, at, "format", || {
            let name = format.name();
            (json!({ "format": name }), format!("must match format \"{name}\""))
        })
    }

    #[inline(never)]
    pub(super) fn string<M: Mode>(&mut self, id: Id, rules: &[OfString], value: &str, at: &At<'_>) -> bool {
        let mut valid = true;
        for rule in rules {
            valid &= match rule {
                OfString::MaxLength(limit) => {
                    is_at_most(value, number::floor(limit))
                        || self.wrong_length::<M>(id, "maxLength", limit, at)
                }
                OfString::MinLength(limit) => {
                    is_at_least(value, number::ceiling(limit))
                        || self.wrong_length::<M>(id, "minLength", limit, at)
                }
                OfString::Pattern(pattern) => {
                    pattern.matches(value)
                        || self.fail::<M>(id, at, "pattern", || {
                            let text = &pattern.text;
                            (json!({ "pattern": text }), format!("must match pattern \"{text}\""))
                        })
                }
                OfString::Format(format) => format.takes(value) || self.wrong_format::<M>(id, *format, at),
                OfString::FormatBound(bound, format, limit) => {
                    format.order(value, limit).is_none_or(|order| bound.allows(order))
                        || self.fail::<M>(id, at, bound.format_keyword(), || {
                            let sign = bound.sign();
                            (
                                json!({ "comparison": sign, "limit": limit }),
                                format!("should be {sign} {limit}"),
                            )
                        })
                }
            };
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    fn wrong_length<M: Mode>(&mut self, id: Id, keyword: &'static str, limit: &Number, at: &At<'_>) -> bool {
        self.fail::<M>(id, at, keyword, || counted(keyword, "maxLength", limit, "characters"))
    }
}

/// Parameters and message of a limit on how many there may be.
pub fn counted(keyword: &str, maximum: &str, limit: &Number, what: &str) -> (Value, String) {
    let than = if keyword == maximum { "more" } else { "fewer" };
    (json!({ "limit": limit }), format!("must NOT have {than} than {} {what}", js_text(limit)))
}

/// Lengths count code points; bytes often settle it without counting.
fn is_at_most(text: &str, limit: usize) -> bool {
    text.len() <= limit || text.chars().count() <= limit
}

fn is_at_least(text: &str, limit: usize) -> bool {
    text.len() >= limit && (text.len() / 4 >= limit || text.chars().count() >= limit)
}
