//! The 2020-12 meta-schema as plain code: every schema in the document, reachable or not, has its
//! keywords' values checked for shape. Notes in passing what the later stages need to know.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keyword::{Keyword, Shape};
use super::problem::{Part, Path, Report};
use super::suggest;
use super::types::Types;

/// What the document holds, so that stages with nothing to do are skipped.
#[derive(Default)]
pub struct Contents<'s> {
    pub refs: bool,
    /// `$id`, `$anchor` or `$dynamicAnchor` below the root, or places where one may hide.
    pub ids: bool,
    pub dynamic_anchors: Vec<(&'s str, &'s Value)>,
}

pub fn check<'s>(schema: &'s Value, report: &mut Report) -> Contents<'s> {
    let mut meta = Meta { report, contents: Contents::default() };
    meta.schema(schema, &Path::Root);
    meta.contents
}

struct Meta<'r, 's> {
    report: &'r mut Report,
    contents: Contents<'s>,
}

impl<'s> Meta<'_, 's> {
    fn schema(&mut self, schema: &'s Value, path: &Path<'_>) {
        match schema {
            Value::Bool(_) => {}
            Value::Object(object) => {
                for (name, value) in object {
                    match Keyword::of(name) {
                        Some(keyword) => self.keyword(keyword, value, schema, &path.key(name)),
                        None => self.contents.ids |= value.is_object() || value.is_array(),
                    }
                }
            }
            _ => self.not_a_schema(schema, path),
        }
    }

    fn keyword(&mut self, keyword: Keyword, value: &'s Value, schema: &'s Value, path: &Path<'_>) {
        match keyword {
            Keyword::Ref | Keyword::RecursiveRef => self.contents.refs = true,
            Keyword::DynamicRef => {
                self.contents.refs = true;
                self.contents.ids = true;
            }
            Keyword::Id | Keyword::Anchor => self.contents.ids = true,
            Keyword::DynamicAnchor => {
                self.contents.ids = true;
                self.contents.dynamic_anchors.extend(value.as_str().map(|name| (name, schema)));
            }
            _ => {}
        }
        self.shape(keyword, value, path);
    }

    fn shape(&mut self, keyword: Keyword, value: &'s Value, path: &Path<'_>) {
        match keyword.shape() {
            // Ajv looks for ids in these too, although only data belongs there.
            Shape::Any => {
                let data = matches!(keyword, Keyword::Const | Keyword::Default);
                self.contents.ids |= !data && value.is_object();
            }
            Shape::Schema => self.schema(value, path),
            Shape::SchemaList => self.schema_list(value, path, keyword),
            Shape::SchemaMap => self.schema_map(value, path, keyword),
            Shape::Dependencies => self.dependencies(value, path),
            Shape::TypeNames => self.type_names(value, path),
            Shape::TextList => self.text_list(value, path, keyword),
            Shape::TextListMap => match value {
                Value::Object(lists) => {
                    for (name, list) in lists {
                        self.text_list(list, &path.key(name), keyword);
                    }
                }
                _ => self.wrong(keyword, "an object of lists of property names", path),
            },
            plain => {
                if let Some(wanted) = mismatch(plain, value) {
                    self.wrong(keyword, wanted, path);
                }
            }
        }
    }

    fn schema_list(&mut self, value: &'s Value, path: &Path<'_>, keyword: Keyword) {
        match value {
            Value::Array(schemas) if !schemas.is_empty() => {
                for (index, schema) in schemas.iter().enumerate() {
                    self.schema(schema, &path.index(index));
                }
            }
            _ => self.wrong(keyword, "a list of at least one schema", path),
        }
    }

    fn schema_map(&mut self, value: &'s Value, path: &Path<'_>, keyword: Keyword) {
        match value {
            Value::Object(schemas) => {
                for (name, schema) in schemas {
                    self.schema(schema, &path.key(name));
                }
            }
            _ => self.wrong(keyword, "an object of schemas", path),
        }
    }

    fn dependencies(&mut self, value: &'s Value, path: &Path<'_>) {
        let Value::Object(members) = value else {
            return self.wrong(Keyword::Dependencies, "an object", path);
        };
        for (name, member) in members {
            match member {
                Value::Array(_) => self.text_list(member, &path.key(name), Keyword::Dependencies),
                _ => self.schema(member, &path.key(name)),
            }
        }
    }

    fn text_list(&mut self, value: &'s Value, path: &Path<'_>, keyword: Keyword) {
        let Value::Array(items) = value else {
            let help = (keyword == Keyword::Required && value.is_boolean())
                .then(|| "list the property's name in `required` of the object that holds it".to_owned());
            let message = format!("`{}` must be a list of property names", keyword.name());
            return self.report.add("schema-invalid", path, Part::Value, message, help);
        };
        // Short lists are searched as they are; a set only pays for itself in long ones.
        let mut seen = HashSet::new();
        let long = items.len() > 32;
        for (index, item) in items.iter().enumerate() {
            let Some(text) = item.as_str() else {
                let message = format!("names in `{}` must be strings", keyword.name());
                self.report.invalid(&path.index(index), message);
                continue;
            };
            let twice = if long {
                !seen.insert(text)
            } else {
                items.iter().take(index).any(|earlier| earlier.as_str() == Some(text))
            };
            if twice {
                self.report.invalid(&path.index(index), format!("`{text}` is listed twice"));
            }
        }
    }

    fn type_names(&mut self, value: &'s Value, path: &Path<'_>) {
        match value {
            Value::String(name) => self.type_name(name, path),
            Value::Array(names) if !names.is_empty() => {
                for (index, name) in names.iter().enumerate() {
                    let at = path.index(index);
                    match name.as_str() {
                        Some(name) => self.type_name(name, &at),
                        None => self.report.invalid(&at, "type names must be strings"),
                    }
                    if names.iter().take(index).any(|earlier| earlier == name) {
                        self.report.invalid(&at, "the type is listed twice");
                    }
                }
            }
            _ => self.wrong(Keyword::Type, "a type name or a list of at least one", path),
        }
    }

    fn type_name(&mut self, name: &str, path: &Path<'_>) {
        if Types::of(name).is_empty() {
            let message = format!("unknown type `{name}`");
            self.report.add("schema-unknown-type", path, Part::Value, message, suggest::for_type(name));
        }
    }

    fn not_a_schema(&mut self, value: &Value, path: &Path<'_>) {
        let tuple = value.is_array() && matches!(path, Path::Key(_, "items"));
        let help = tuple.then(|| "in 2020-12 a tuple is written with `prefixItems`".to_owned());
        let message = "a schema must be an object or a boolean".to_owned();
        self.report.add("schema-invalid", path, Part::Value, message, help);
    }

    fn wrong(&mut self, keyword: Keyword, wanted: &str, path: &Path<'_>) {
        self.report.invalid(path, format!("`{}` must be {wanted}", keyword.name()));
    }
}

/// What the value should have been, when it is not.
fn mismatch(shape: Shape, value: &Value) -> Option<&'static str> {
    let (fits, wanted) = match shape {
        Shape::Anchor => {
            (value.as_str().is_some_and(is_anchor), "a plain name (letters, digits, `-`, `.`, `_`)")
        }
        Shape::Array => (value.is_array(), "a list"),
        Shape::Bool => (value.is_boolean(), "true or false"),
        Shape::Id => (value.as_str().is_some_and(is_id), "a URI without a fragment"),
        Shape::NonNegativeInteger => {
            let whole = value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
            (whole, "a whole number, zero or more")
        }
        Shape::Number => (value.is_number(), "a number"),
        Shape::PositiveNumber => (value.as_f64().is_some_and(|number| number > 0.0), "a number above zero"),
        Shape::Text => (value.is_string(), "a string"),
        Shape::Vocabulary => (is_vocabulary(value), "an object of booleans"),
        _ => (true, ""),
    };
    (!fits).then_some(wanted)
}

pub fn is_anchor(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// No fragment, except an empty one at the end.
fn is_id(id: &str) -> bool {
    !id.strip_suffix('#').unwrap_or(id).contains('#')
}

fn is_vocabulary(value: &Value) -> bool {
    value.as_object().is_some_and(|members: &Map<String, Value>| members.values().all(Value::is_boolean))
}

#[cfg(test)]
#[path = "meta_tests.rs"]
mod tests;
