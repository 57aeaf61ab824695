//! Formats that a project defines: a name and a pattern. A schema that uses one gets the pattern in place of the
//! `format`, so that validation, providers and other readers of the artifact need no table of names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::{Value, json};
use toolwright_schema::{is_known_format, lint, visit_subschemas, visit_subschemas_mut};

/// The project's formats: name → pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Formats(BTreeMap<String, String>);

/// A format that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the format `{name}` {reason}")]
pub struct Error {
    pub name: String,
    pub reason: String,
    pub help: String,
}

impl Formats {
    /// Checks names and patterns. Patterns follow the rules of `pattern` in a schema.
    pub fn new(patterns: BTreeMap<String, String>) -> Result<Self, Error> {
        for (name, pattern) in &patterns {
            check(name, pattern)?;
        }
        Ok(Self(patterns))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Identifies the content, for a cache.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// As [`Self::expand`], copying the schema only if it uses a format.
    pub(crate) fn expand_in(&self, schema: &mut Cow<'_, Value>) {
        let mut is_used = false;
        if !self.0.is_empty() {
            visit_subschemas(schema, &mut |_, schema| {
                let name = schema.get("format").and_then(Value::as_str);
                is_used |= name.is_some_and(|name| self.contains(name));
            });
        }
        if is_used {
            self.expand(schema.to_mut());
        }
    }

    /// Adds the patterns to a schema, at every depth.
    pub fn expand(&self, schema: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        visit_subschemas_mut(schema, &mut |schema| {
            let Some(keywords) = schema.as_object_mut() else { return };
            let name = keywords.get("format").and_then(Value::as_str);
            let Some(pattern) = name.and_then(|name| self.0.get(name)) else { return };
            keywords.shift_remove("format");
            if !keywords.contains_key("pattern") {
                keywords.insert("pattern".to_owned(), pattern.as_str().into());
            } else if let Value::Array(all) = keywords.entry("allOf").or_insert_with(|| json!([])) {
                all.push(json!({ "type": "string", "pattern": pattern }));
            }
        });
    }
}

fn check(name: &str, pattern: &str) -> Result<(), Error> {
    let error = |reason: String, help: &str| Error { name: name.to_owned(), reason, help: help.to_owned() };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        let help = "use letters, digits, `-`, `_` and `.`";
        return Err(error("has a name that schemas cannot use".to_owned(), help));
    }
    if is_known_format(name) {
        return Err(error("exists already".to_owned(), "choose another name"));
    }
    match lint(&json!({ "type": "string", "pattern": pattern })).into_iter().next() {
        None => Ok(()),
        Some(problem) => {
            let help = "write a regular expression of ECMAScript, such as '^\\+[1-9][0-9]{6,14}$'";
            Err(error(format!("has a pattern that cannot be used: {}", problem.message), help))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats(name: &str, pattern: &str) -> Result<Formats, Error> {
        Formats::new([(name.to_owned(), pattern.to_owned())].into())
    }

    #[test]
    fn a_schema_gets_the_pattern_at_every_depth() {
        let formats = formats("phone", "^\\+[0-9]+$").unwrap();
        let mut schema = json!({ "type": "object", "properties": {
            "one": { "type": "string", "format": "phone" },
            "all": { "type": "array", "items": { "type": "string", "format": "phone", "pattern": "^.{5}$" } },
            "day": { "type": "string", "format": "date" },
            "data": { "type": "string", "default": "x", "enum": ["x"] },
        } });
        formats.expand(&mut schema);
        let properties = &schema["properties"];
        assert_eq!(properties["one"], json!({ "type": "string", "pattern": "^\\+[0-9]+$" }));
        assert_eq!(properties["all"]["items"]["pattern"], "^.{5}$");
        assert_eq!(
            properties["all"]["items"]["allOf"],
            json!([{ "type": "string", "pattern": "^\\+[0-9]+$" }])
        );
        assert_eq!(properties["day"], json!({ "type": "string", "format": "date" }));
    }

    #[test]
    fn a_format_that_cannot_be_used_says_why() {
        let cases = [
            ("date", "x", "the format `date` exists already"),
            ("a b", "x", "the format `a b` has a name that schemas cannot use"),
            ("phone", "(", "the format `phone` has a pattern that cannot be used"),
        ];
        for (name, pattern, expected) in cases {
            let error = formats(name, pattern).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
