//! What an `http` tool sends, as it is declared: templates in which arguments and secrets have their places.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

/// The methods that a tool may use.
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// A request, and which part of the answer is the tool's data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HttpTool {
    pub method: String,
    /// Scheme, host and port: fixed, so that no argument decides where a request goes.
    pub origin: String,
    /// What follows it, as it is written.
    pub path: Template,
    /// Without it, and if there is no body, the arguments that have no other place.
    pub query: Option<BTreeMap<String, Template>>,
    pub headers: BTreeMap<String, Template>,
    /// A value with templates for strings. Without it, and if the method takes one, the arguments that have no other place.
    pub body: Option<Value>,
    /// A JSON pointer into the answer; all of it if there is none.
    pub data: Option<String>,
}

/// A text with places: `{argument}` and `${VARIABLE}` of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template(Vec<Piece>);

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Piece {
    Text(String),
    Argument(String),
    Variable(String),
}

impl Template {
    /// Reads a template. A brace that names nothing stands for itself.
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, after) =
                (rest.get(..at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default());
            let named = after.split_once('}').filter(|(name, _)| is_name(name));
            let Some((name, behind)) = named else {
                plain.push_str(before);
                plain.push('{');
                rest = after;
                continue;
            };
            let piece = match before.strip_suffix('$') {
                Some(before) => {
                    plain.push_str(before);
                    Piece::Variable(name.to_owned())
                }
                None => {
                    plain.push_str(before);
                    Piece::Argument(name.to_owned())
                }
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(piece);
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self(pieces)
    }

    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The argument that the template is, if it is nothing else.
    pub fn only_argument(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Argument(name)] => Some(name),
            _ => None,
        }
    }

    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
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
    /// Whether the method carries a body of its own accord.
    pub fn sends_body(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }

    /// The arguments that have a place.
    pub fn placed(&self) -> BTreeSet<String> {
        let mut placed: BTreeSet<String> = self.path.arguments().map(str::to_owned).collect();
        let named = self.query.iter().flatten().chain(&self.headers);
        placed.extend(named.flat_map(|(_, template)| template.arguments().map(str::to_owned)));
        if let Some(body) = &self.body {
            strings(body, &mut |text| placed.extend(Template::parse(text).arguments().map(str::to_owned)));
        }
        placed
    }
}

/// Visits every string of a value, the names of members excepted.
pub fn strings(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, visit)),
        Value::Object(members) => members.values().for_each(|member| strings(member, visit)),
        _ => {}
    }
}

/// The names of the parameters that a schema declares.
pub(crate) fn parameter_names(schema: &Value) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_knows_its_places() {
        let template = Template::parse("a{b}c${D}{e f}{");
        let expected = [
            Piece::Text("a".to_owned()),
            Piece::Argument("b".to_owned()),
            Piece::Text("c".to_owned()),
            Piece::Variable("D".to_owned()),
            Piece::Text("{e f}{".to_owned()),
        ];
        assert_eq!(template.pieces(), expected);
        assert_eq!(Template::parse("{x}").only_argument(), Some("x"));
        assert_eq!(Template::parse("").pieces(), []);
    }
}
