//! Keywords for numbers and strings.

use serde_json::Value;

use super::Result;
use crate::format::{Check, Format};
use crate::keyword::{Keyword, Keywords};
use crate::number::{Divisor, ceiling, floor};
use crate::pattern::Pattern;
use crate::validate::bound::BOUNDS;
use crate::validate::compiled_schema::{NumberRule, StringRule};

fn format(keywords: &Keywords<'_>) -> Option<&'static Format> {
    keywords.get(Keyword::Format).and_then(Value::as_str).and_then(Format::from_name)
}

pub fn number(keywords: &Keywords<'_>) -> Result<Box<[NumberRule]>> {
    let mut rules = Vec::new();
    for bound in &BOUNDS {
        if let Some(limit) = keywords.number(bound.keyword)? {
            rules.push(NumberRule::Bound(bound, limit));
        }
    }
    if let Some(divisor) = keywords.number(Keyword::MultipleOf)? {
        rules.push(NumberRule::MultipleOf(Box::new(Divisor::new(divisor))));
    }
    if let Some(format) = format(keywords)
        && let Check::Number(check) = format.check
    {
        rules.push(NumberRule::Format(format, check));
    }
    Ok(rules.into())
}

pub fn string(keywords: &Keywords<'_>) -> Result<Box<[StringRule]>> {
    let mut rules = Vec::new();
    if let Some(limit) = keywords.number(Keyword::MaxLength)? {
        let max = floor(&limit);
        rules.push(StringRule::MaxLength(limit, max));
    }
    if let Some(limit) = keywords.number(Keyword::MinLength)? {
        let min = ceiling(&limit);
        rules.push(StringRule::MinLength(limit, min));
    }
    if let Some(pattern) = keywords.text(Keyword::Pattern)? {
        rules.push(StringRule::Pattern(Box::new(Pattern::new(pattern))));
    }
    let Some(format) = format(keywords).filter(|format| matches!(format.check, Check::Text(_))) else {
        return Ok(rules.into());
    };
    rules.push(StringRule::Format(format));
    for bound in &BOUNDS {
        if let Some(limit) = keywords.text(bound.format_keyword)? {
            rules.push(StringRule::FormatBound(bound, format, limit.into()));
        }
    }
    Ok(rules.into())
}
