//! The request of an `http` tool, as it is declared: templates with placeholders for arguments and secrets.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The methods that a tool may use.
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// A request, and which part of the response is the tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpTool {
    pub method: String,
    /// Scheme, host and port. Fixed: an argument cannot choose where a request goes.
    pub origin: String,
    /// The path, query and fragment of the URL.
    pub path: Template,
    /// If absent and there is no body, the arguments that no template uses are sent here.
    pub query: Option<BTreeMap<String, Template>>,
    pub headers: BTreeMap<String, Template>,
    /// A value whose strings are templates. If absent and the method has a body, the arguments that no template
    /// uses are sent here.
    pub body: Option<Value>,
    /// A JSON pointer into the response; `None` is the whole response.
    pub data: Option<String>,
}

/// A text with placeholders: `{argument}`, and `${VARIABLE}` of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template(Vec<TemplatePart>);

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TemplatePart {
    Text(String),
    Argument(String),
    Variable(String),
}

impl Template {
    /// Parses a template. A brace without a name after it is plain text.
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
                plain.push_str(&rest[..=at]);
                rest = after;
                continue;
            };
            plain.push_str(before.strip_suffix('$').unwrap_or(before));
            if !plain.is_empty() {
                pieces.push(TemplatePart::Text(std::mem::take(&mut plain)));
            }
            let is_variable = before.ends_with('$');
            let piece = if is_variable { TemplatePart::Variable } else { TemplatePart::Argument };
            pieces.push(piece(name.to_owned()));
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(TemplatePart::Text(plain));
        }
        Self(pieces)
    }

    pub fn pieces(&self) -> &[TemplatePart] {
        &self.0
    }

    /// The argument, if the template consists of one argument only.
    pub fn only_argument(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePart::Argument(name)] => Some(name),
            _ => None,
        }
    }

    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl HttpTool {
    /// Whether arguments go into the body by default.
    pub fn sends_body(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// The arguments that some template uses.
    pub fn template_arguments(&self) -> BTreeSet<String> {
        let templates = self.query.iter().flatten().chain(&self.headers).map(|(_, template)| template);
        let templates = templates.chain([&self.path]);
        let mut names: BTreeSet<String> =
            templates.flat_map(Template::arguments).map(str::to_owned).collect();
        if let Some(body) = &self.body {
            visit_strings(body, &mut |text| {
                names.extend(Template::parse(text).arguments().map(str::to_owned));
            });
        }
        names
    }
}

/// Visits every string of a value, except the names of members.
pub fn visit_strings(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| visit_strings(item, visit)),
        Value::Object(members) => members.values().for_each(|member| visit_strings(member, visit)),
        _ => {}
    }
}

#[cfg(test)]
#[path = "http_tool_tests.rs"]
mod tests;
