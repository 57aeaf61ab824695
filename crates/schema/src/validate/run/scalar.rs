//! Keywords for numbers and strings.

use serde_json::{Number, Value, json};

use super::{Mode, Run};
use crate::validate::format::Format;
use crate::validate::node::{Id, OfNumber, OfString};
use crate::validate::number::js_text;
use crate::validate::path::At;

impl Run<'_> {
    pub(super) fn number<M: Mode>(
        &mut self,
        id: Id,
        rules: &[OfNumber],
        value: &Number,
        at: &At<'_>,
    ) -> bool {
        let mut valid = true;
        for rule in rules {
            valid &= rule.holds(value) || self.number_error::<M>(id, rule, at);
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    fn number_error<M: Mode>(&mut self, id: Id, rule: &OfNumber, at: &At<'_>) -> bool {
        match rule {
            OfNumber::Bound(bound, limit) => self.fail::<M>(id, at, bound.keyword(), || {
                let sign = bound.sign();
                (json!({ "comparison": sign, "limit": limit }), format!("must be {sign} {}", js_text(limit)))
            }),
            OfNumber::MultipleOf(multiple) => self.fail::<M>(id, at, "multipleOf", || {
                let text = js_text(&multiple.value);
                (json!({ "multipleOf": multiple.value }), format!("must be multiple of {text}"))
            }),
            OfNumber::Format(format) => self.wrong_format::<M>(id, *format, at),
        }
    }

    fn wrong_format<M: Mode>(&mut self, id: Id, format: Format, at: &At<'_>) -> bool {
        self.fail::<M>(id, at, "format", || {
            let name = format.name();
            (json!({ "format": name }), format!("must match format \"{name}\""))
        })
    }

    pub(super) fn string<M: Mode>(&mut self, id: Id, rules: &[OfString], value: &str, at: &At<'_>) -> bool {
        let mut valid = true;
        for rule in rules {
            valid &= rule.holds(value) || self.string_error::<M>(id, rule, at);
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    fn string_error<M: Mode>(&mut self, id: Id, rule: &OfString, at: &At<'_>) -> bool {
        let wrong_length = |run: &mut Self, keyword: &'static str, limit: &Number| {
            run.fail::<M>(id, at, keyword, || counted(keyword, "maxLength", limit, "characters"))
        };
        match rule {
            OfString::MaxLength(limit, _) => wrong_length(self, "maxLength", limit),
            OfString::MinLength(limit, _) => wrong_length(self, "minLength", limit),
            OfString::Pattern(pattern) => self.fail::<M>(id, at, "pattern", || {
                let text = &pattern.text;
                (json!({ "pattern": text }), format!("must match pattern \"{text}\""))
            }),
            OfString::Format(format) => self.wrong_format::<M>(id, *format, at),
            OfString::FormatBound(bound, _, limit) => self.fail::<M>(id, at, bound.format_keyword(), || {
                let sign = bound.sign();
                (json!({ "comparison": sign, "limit": limit }), format!("should be {sign} {limit}"))
            }),
        }
    }
}

/// Parameters and message of a limit on how many there may be.
pub fn counted(keyword: &str, maximum: &str, limit: &Number, what: &str) -> (Value, String) {
    let than = if keyword == maximum { "more" } else { "fewer" };
    (json!({ "limit": limit }), format!("must NOT have {than} than {} {what}", js_text(limit)))
}
