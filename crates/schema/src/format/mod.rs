//! The formats, one row each. Formats of JSON Schema follow the documents that the specification names; those that
//! ajv-formats 3 adds follow that library. Unknown names constrain nothing.

mod date_time;
mod email;
mod host;
mod idn;
mod json_pointer;
mod text;
mod uri_grammar;

use std::cmp::Ordering;

use serde_json::Number;

use crate::{number, pattern};
use uri_grammar::{ASCII, UNICODE};

/// To add a format, add a row and its function.
pub static FORMATS: &[Format] = &[
    Format::text("date", date_time::is_date).ordered(|left, right| Some(left.cmp(right))),
    Format::text("time", date_time::is_time).ordered(date_time::compare_times),
    Format::text("date-time", date_time::is_date_time).ordered(date_time::compare_date_times),
    Format::text("iso-time", date_time::is_iso_time).ordered(date_time::compare_iso_times),
    Format::text("iso-date-time", date_time::is_iso_date_time).ordered(date_time::compare_iso_date_times),
    Format::text("duration", date_time::is_duration),
    Format::text("uri", |text| uri_grammar::is_uri(text, &ASCII)),
    Format::text("uri-reference", |text| uri_grammar::is_reference(text, &ASCII)),
    Format::text("uri-template", uri_grammar::is_uri_template),
    Format::text("iri", |text| uri_grammar::is_uri(text, &UNICODE)).unknown_to_ajv(),
    Format::text("iri-reference", |text| uri_grammar::is_reference(text, &UNICODE)).unknown_to_ajv(),
    Format::text("url", text::is_url),
    Format::text("email", email::is_email),
    Format::text("idn-email", email::is_idn_email).unknown_to_ajv(),
    Format::text("hostname", host::is_hostname),
    Format::text("idn-hostname", idn::is_idn_hostname).unknown_to_ajv(),
    Format::text("ipv4", host::is_ipv4),
    Format::text("ipv6", host::is_ipv6),
    Format::text("regex", |text| pattern::check_syntax(text).is_ok()),
    Format::text("uuid", host::is_uuid),
    Format::text("json-pointer", json_pointer::is_pointer),
    Format::text("json-pointer-uri-fragment", json_pointer::is_pointer_fragment),
    Format::text("relative-json-pointer", json_pointer::is_relative_pointer),
    Format::text("byte", text::is_base64),
    Format::number("int32", is_int32),
    Format::number("int64", number::is_integer),
    Format::number("float", |_| true),
    Format::number("double", |_| true),
    Format::annotation("password"),
    Format::annotation("binary"),
];

/// One format.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    pub check: Check,
    /// Whether strict mode accepts the name: whether ajv-formats registers it.
    pub is_strict: bool,
    order: Option<Compare>,
}

/// Orders two texts for `formatMinimum` and the like; `None` where Ajv finds no order either.
type Compare = fn(&str, &str) -> Option<Ordering>;

/// The check of a format, by the type that it constrains.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    Text(fn(&str) -> bool),
    Number(fn(&Number) -> bool),
    Nothing,
}

impl Format {
    const fn text(name: &'static str, check: fn(&str) -> bool) -> Self {
        Self { name, check: Check::Text(check), is_strict: true, order: None }
    }

    const fn number(name: &'static str, check: fn(&Number) -> bool) -> Self {
        Self { name, check: Check::Number(check), is_strict: true, order: None }
    }

    const fn annotation(name: &'static str) -> Self {
        Self { name, check: Check::Nothing, is_strict: true, order: None }
    }

    const fn ordered(mut self, compare: Compare) -> Self {
        self.order = Some(compare);
        self
    }

    const fn unknown_to_ajv(mut self) -> Self {
        self.is_strict = false;
        self
    }

    pub fn from_name(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    pub fn accepts(&self, text: &str) -> bool {
        match self.check {
            Check::Text(check) => check(text),
            Check::Number(_) | Check::Nothing => true,
        }
    }

    /// Whether `formatMinimum` and the like are allowed with it. Formats that check nothing compare nothing either.
    pub fn is_comparable(&self) -> bool {
        self.order.is_some() || matches!(self.check, Check::Nothing)
    }

    pub fn compare(&self, left: &str, right: &str) -> Option<Ordering> {
        let compare = self.order.filter(|_| !left.is_empty() && !right.is_empty())?;
        compare(left, right)
    }
}

/// Whether there is a format of this name, for validation or for strict mode.
pub fn is_known_format(name: &str) -> bool {
    Format::from_name(name).is_some()
}

fn is_int32(value: &Number) -> bool {
    number::is_integer(value) && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number::float(value))
}

#[cfg(test)]
mod format_tests;
