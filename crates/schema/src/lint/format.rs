//! The formats that ajv-formats 3 registers, and the keywords that compare by format.

use serde_json::Value;

use super::keyword::{Keyword, Node};
use super::problem::{Part, Path};
use super::suggest;
use super::walk::Linter;

const KNOWN: &[&str] = &[
    "date",
    "time",
    "date-time",
    "iso-time",
    "iso-date-time",
    "duration",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "regex",
    "uuid",
    "json-pointer",
    "json-pointer-uri-fragment",
    "relative-json-pointer",
    "byte",
    "int32",
    "int64",
    "float",
    "double",
    "password",
    "binary",
];

/// Every format name a schema may use.
#[must_use]
pub fn known_formats() -> &'static [&'static str] {
    KNOWN
}

const LIMITS: [Keyword; 4] = [
    Keyword::FormatMaximum,
    Keyword::FormatMinimum,
    Keyword::FormatExclusiveMaximum,
    Keyword::FormatExclusiveMinimum,
];

impl<'s> Linter<'s> {
    pub(super) fn format(&mut self, node: &Node<'s>, path: &Path<'_>) {
        if let Some(name) = node.get(Keyword::Format).and_then(Value::as_str)
            && !KNOWN.contains(&name)
        {
            let help =
                moved(name).map(str::to_owned).or_else(|| suggest::did_you_mean(name, KNOWN.iter().copied()));
            let message = format!("unknown format `{name}`");
            self.report.add("schema-unknown-format", &path.key("format"), Part::Value, message, help);
        }
        for limit in LIMITS {
            if let Some(value) = node.get(limit) {
                self.format_limit(node, limit.name(), value, path);
            }
        }
    }

    fn format_limit(&mut self, node: &Node<'s>, name: &'static str, value: &Value, path: &Path<'_>) {
        let at = path.key(name);
        if !value.is_string() {
            self.report.invalid(&at, format!("`{name}` must be a string"));
        }
        let Some(format) = node.get(Keyword::Format) else {
            let message = format!("`{name}` without `format` means nothing");
            let help = "add the `format` to compare by, such as `date-time`".to_owned();
            self.report.add("schema-ignored-keyword", &at, Part::Key, message, Some(help));
            return;
        };
        let Some(format) = format.as_str().filter(|format| KNOWN.contains(format)) else {
            return;
        };
        // `password` and `binary` check nothing, so there is nothing to compare either.
        let comparable = ["date", "time", "date-time", "iso-time", "iso-date-time", "password", "binary"];
        if !comparable.contains(&format) {
            let message = format!("values of format `{format}` cannot be compared with `{name}`");
            let help = "only dates and times have an order".to_owned();
            self.report.add("schema-format-without-order", &at, Part::Key, message, Some(help));
        }
    }
}

fn moved(name: &str) -> Option<&'static str> {
    Some(match name {
        "datetime" | "dateTime" | "timestamp" => "did you mean `date-time`?",
        "guid" | "GUID" => "did you mean `uuid`?",
        "ip" => "did you mean `ipv4` or `ipv6`?",
        "base64" => "did you mean `byte`?",
        "iri" => "did you mean `uri`?",
        "iri-reference" => "did you mean `uri-reference`?",
        "idn-email" => "did you mean `email`?",
        "idn-hostname" => "did you mean `hostname`?",
        _ => return None,
    })
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
