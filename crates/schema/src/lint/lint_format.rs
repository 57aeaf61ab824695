//! `format`, and the keywords that compare by format.

use serde_json::Value;

use super::lint_help;
use super::linter::{Linter, SchemaVisit};
use super::problem::Problem;
use crate::format::{FORMATS, Format};
use crate::keyword::Keyword;
use crate::validate::bound::BOUNDS;

impl<'s> Linter<'s> {
    pub(super) fn format(&mut self, schema: &SchemaVisit<'s, '_>) {
        let name = schema.get(Keyword::Format).and_then(Value::as_str);
        let format = name.and_then(Format::from_name).filter(|format| format.is_strict);
        if let (Some(name), None) = (name, format) {
            let message = format!("unknown `format`: `{name}`");
            let problem = Problem::at_value("schema-unknown-format", &schema.key("format"), message);
            self.report.add(problem.help_if(format_help(name)));
        }
        BOUNDS.iter().for_each(|bound| self.format_limit(schema, bound.format_keyword, format));
    }

    fn format_limit(&mut self, schema: &SchemaVisit<'s, '_>, limit: Keyword, format: Option<&Format>) {
        let Some(value) = schema.get(limit) else { return };
        let name = limit.name();
        let at = schema.key(name);
        if !value.is_string() {
            self.report.wrong(&at, name, "a string", value);
        }
        if !schema.has(Keyword::Format) {
            let message = format!("`{name}` has no effect without `format`");
            return self.ignored(&at, message, "add the `format` to compare by, such as `date-time`");
        }
        if let Some(format) = format.filter(|format| !format.is_comparable()) {
            let message = format!("`{name}` cannot compare values of format `{}`", format.name);
            let problem = Problem::at_key("schema-format-without-order", &at, message);
            self.report.add(problem.help("only dates and times have an order"));
        }
    }
}

/// Help for a format that strict mode does not know.
fn format_help(name: &str) -> Option<String> {
    let help = match name {
        "datetime" | "dateTime" | "timestamp" => "did you mean `date-time`?",
        "guid" | "GUID" => "did you mean `uuid`?",
        "ip" => "did you mean `ipv4` or `ipv6`?",
        "base64" => "did you mean `byte`?",
        "iri" => "did you mean `uri`?",
        "iri-reference" => "did you mean `uri-reference`?",
        "idn-email" => "did you mean `email`?",
        "idn-hostname" => "did you mean `hostname`?",
        _ => {
            let strict = FORMATS.iter().filter(|format| format.is_strict);
            return lint_help::did_you_mean(name, strict.map(|format| format.name));
        }
    };
    Some(help.to_owned())
}

#[cfg(test)]
#[path = "lint_format_tests.rs"]
mod tests;
