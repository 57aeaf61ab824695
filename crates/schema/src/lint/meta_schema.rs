//! The 2020-12 meta-schema as code: checks the keyword values of every schema in the document, reachable or not.
//! Also finds out which of the later stages are needed.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::lint_help::{self, describe};
use super::problem::{Problem, Report};
use crate::keyword::{Keyword, Shape};
use crate::pointer::Location;
use crate::types::TypeSet;

/// Contents of the document that later stages need to know.
#[derive(Default)]
pub struct Contents<'s> {
    pub refs: bool,
    /// There may be an `$id`, `$anchor` or `$dynamicAnchor` below the root.
    pub ids: bool,
    pub dynamic_anchors: Vec<(&'s str, &'s Value)>,
}

pub fn check<'s>(schema: &'s Value, report: &mut Report) -> Contents<'s> {
    let mut meta = Meta { report, contents: Contents::default() };
    meta.schema(schema, &Location::Root);
    meta.contents
}

struct Meta<'r, 's> {
    report: &'r mut Report,
    contents: Contents<'s>,
}

impl<'s> Meta<'_, 's> {
    fn schema(&mut self, schema: &'s Value, location: &Location<'_>) {
        match schema {
            Value::Bool(_) => {}
            Value::Object(object) => {
                for (name, value) in object {
                    match Keyword::from_name(name) {
                        Some(keyword) => self.keyword(keyword, value, schema, &location.key(name)),
                        None => self.contents.ids |= value.is_object() || value.is_array(),
                    }
                }
            }
            _ => self.not_a_schema(schema, location),
        }
    }

    fn keyword(&mut self, keyword: Keyword, value: &'s Value, schema: &'s Value, location: &Location<'_>) {
        let contents = &mut self.contents;
        contents.refs |= matches!(keyword, Keyword::Ref | Keyword::RecursiveRef | Keyword::DynamicRef);
        contents.ids |= matches!(keyword, Keyword::DynamicRef | Keyword::Id | Keyword::Anchor);
        if keyword == Keyword::DynamicAnchor {
            contents.ids = true;
            contents.dynamic_anchors.extend(value.as_str().map(|name| (name, schema)));
        }
        self.shape(keyword, value, location);
    }

    fn shape(&mut self, keyword: Keyword, value: &'s Value, location: &Location<'_>) {
        match keyword.shape() {
            // Ajv also looks for ids in these, although they are data.
            Shape::Any => {
                let data = matches!(keyword, Keyword::Const | Keyword::Default);
                self.contents.ids |= !data && value.is_object();
            }
            Shape::Schema => self.schema(value, location),
            Shape::SchemaList => self.schema_list(value, location, keyword),
            Shape::SchemaMap => self.object(keyword, "an object of schemas", value, location, Self::schema),
            Shape::Dependencies => {
                self.object(keyword, "an object", value, location, |meta, member, at| match member {
                    Value::Array(_) => meta.text_list(member, at, keyword),
                    _ => meta.schema(member, at),
                });
            }
            Shape::TypeNames => self.type_names(value, location),
            Shape::TextList => self.text_list(value, location, keyword),
            Shape::TextListMap => {
                let wanted = "an object of lists of property names";
                self.object(keyword, wanted, value, location, |meta, member, at| {
                    meta.text_list(member, at, keyword);
                });
            }
            plain => {
                if let Some(wanted) = mismatch(plain, value) {
                    self.report.wrong(location, keyword.name(), wanted, value);
                }
            }
        }
    }

    fn schema_list(&mut self, value: &'s Value, location: &Location<'_>, keyword: Keyword) {
        match value {
            Value::Array(schemas) if !schemas.is_empty() => {
                for (index, schema) in schemas.iter().enumerate() {
                    self.schema(schema, &location.index(index));
                }
            }
            _ => self.report.wrong(location, keyword.name(), "a list of at least one schema", value),
        }
    }

    /// Checks each member of a keyword that must be an object.
    fn object(
        &mut self,
        keyword: Keyword,
        wanted: &str,
        value: &'s Value,
        location: &Location<'_>,
        check: impl Fn(&mut Self, &'s Value, &Location<'_>),
    ) {
        let Value::Object(members) = value else {
            return self.report.wrong(location, keyword.name(), wanted, value);
        };
        for (name, member) in members {
            check(self, member, &location.key(name));
        }
    }

    fn text_list(&mut self, value: &'s Value, location: &Location<'_>, keyword: Keyword) {
        let name = keyword.name();
        let Value::Array(items) = value else {
            let message = format!("`{name}` must be a list of property names, got {}", describe(value));
            let help = (keyword == Keyword::Required && value.is_boolean())
                .then(|| "list the property's name in `required` of the enclosing object".to_owned());
            return self.report.add(Problem::at_value("schema-invalid", location, message).help_if(help));
        };
        let mut names = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let at = location.index(index);
            match item.as_str() {
                Some(text) if names.insert(text) => {}
                Some(text) => self.report.invalid(&at, format!("`{name}` lists `{text}` twice")),
                None => self.report.wrong(&at, &format!("{name}/{index}"), "a string", item),
            }
        }
    }

    fn type_names(&mut self, value: &'s Value, location: &Location<'_>) {
        match value {
            Value::String(name) => self.type_name(name, location),
            Value::Array(names) if !names.is_empty() => {
                for (index, name) in names.iter().enumerate() {
                    let at = location.index(index);
                    match name.as_str() {
                        Some(name) => self.type_name(name, &at),
                        None => self.report.wrong(&at, &format!("type/{index}"), "a string", name),
                    }
                    if names.iter().take(index).any(|earlier| earlier == name) {
                        self.report.invalid(&at, format!("`type` lists {} twice", describe(name)));
                    }
                }
            }
            _ => self.report.wrong(location, "type", "a type name or a list of at least one", value),
        }
    }

    fn type_name(&mut self, name: &str, location: &Location<'_>) {
        if TypeSet::from_name(name).is_empty() {
            let problem =
                Problem::at_value("schema-unknown-type", location, format!("unknown `type`: `{name}`"));
            self.report.add(problem.help_if(lint_help::for_type(name)));
        }
    }

    fn not_a_schema(&mut self, value: &Value, location: &Location<'_>) {
        let is_tuple = value.is_array() && matches!(location, Location::Key(_, "items"));
        let help = is_tuple.then(|| "in 2020-12 a tuple is written with `prefixItems`".to_owned());
        let message = match location {
            Location::Key(_, name) => {
                format!("`{name}` must be a schema (an object or a boolean), got {}", describe(value))
            }
            _ => format!("a schema must be an object or a boolean, got {}", describe(value)),
        };
        self.report.add(Problem::at_value("schema-invalid", location, message).help_if(help));
    }
}

/// The wanted form, when the value does not have it.
fn mismatch(shape: Shape, value: &Value) -> Option<&'static str> {
    let (fits, wanted) = match shape {
        Shape::Anchor => {
            (value.as_str().is_some_and(is_anchor), "a plain name (letters, digits, `-`, `.`, `_`)")
        }
        Shape::Array => (value.is_array(), "a list"),
        Shape::Boolean => (value.is_boolean(), "true or false"),
        Shape::Id => (value.as_str().is_some_and(is_id), "a URI without a fragment"),
        Shape::NonNegativeInteger => {
            let whole = value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
            (whole, "a whole number, 0 or more")
        }
        Shape::Number => (value.is_number(), "a number"),
        Shape::PositiveNumber => (value.as_f64().is_some_and(|number| number > 0.0), "a number above 0"),
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
#[path = "meta_schema_tests.rs"]
mod tests;
