//! Keywords for numbers and strings.

use serde_json::Value;

use super::keyword::Keywords;
use super::{Done, read};
use crate::validate::bound::Bound;
use crate::validate::format::Format;
use crate::validate::node::{OfNumber, OfString};
use crate::validate::number::{self, Multiple};
use crate::validate::pattern::Pattern;

fn format(words: &Keywords<'_>) -> Option<Format> {
    words.format.and_then(Value::as_str).and_then(Format::named)
}

pub fn number(words: &Keywords<'_>) -> Done<Box<[OfNumber]>> {
    let mut rules = Vec::new();
    let bounds = [
        (Bound::Maximum, words.maximum),
        (Bound::Minimum, words.minimum),
        (Bound::ExclusiveMaximum, words.exclusive_maximum),
        (Bound::ExclusiveMinimum, words.exclusive_minimum),
    ];
    for (bound, value) in bounds {
        if let Some(limit) = read::number(value, bound.keyword())? {
            rules.push(OfNumber::Bound(bound, limit));
        }
    }
    if let Some(divisor) = read::number(words.multiple_of, "multipleOf")? {
        rules.push(OfNumber::MultipleOf(Box::new(Multiple::new(divisor))));
    }
    if let Some(format) = format(words).filter(|format| format.is_for_numbers()) {
        rules.push(OfNumber::Format(format));
    }
    Ok(rules.into())
}

pub fn string(words: &Keywords<'_>) -> Done<Box<[OfString]>> {
    let mut rules = Vec::new();
    if let Some(limit) = read::number(words.max_length, "maxLength")? {
        let most = number::floor(&limit);
        rules.push(OfString::MaxLength(limit, most));
    }
    if let Some(limit) = read::number(words.min_length, "minLength")? {
        let least = number::ceiling(&limit);
        rules.push(OfString::MinLength(limit, least));
    }
    if let Some(pattern) = read::text(words.pattern, "pattern")? {
        rules.push(OfString::Pattern(Box::new(Pattern::new(pattern))));
    }
    let Some(format) = format(words).filter(|format| format.is_for_strings()) else {
        return Ok(rules.into());
    };
    rules.push(OfString::Format(format));
    let bounds = [
        (Bound::Maximum, words.format_maximum),
        (Bound::Minimum, words.format_minimum),
        (Bound::ExclusiveMaximum, words.format_exclusive_maximum),
        (Bound::ExclusiveMinimum, words.format_exclusive_minimum),
    ];
    for (bound, value) in bounds {
        if let Some(limit) = read::text(value, bound.format_keyword())? {
            rules.push(OfString::FormatBound(bound, format, limit.into()));
        }
    }
    Ok(rules.into())
}
