//! The schemas of a document with an `$id`, `$anchor` or `$dynamicAnchor`, where Ajv's own traversal finds them (it does
//! not enter every keyword).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::meta_schema::is_anchor;
use super::problem::{Problem, Report};
use crate::keyword::{Keyword, Shape};
use crate::pointer::Location;
use crate::reference::is_meta_schema;
use crate::uri;

/// A schema, its pointer in the document and the base URI of references in it.
#[derive(Clone)]
pub struct SchemaWithBase<'s> {
    pub schema: &'s Value,
    pub pointer: String,
    pub base: String,
}

pub type SchemaIds<'s> = HashMap<String, SchemaWithBase<'s>>;

pub fn collect<'s>(root: &'s Value, root_base: &str, report: &mut Report) -> SchemaIds<'s> {
    let mut search = Search { ids: HashMap::new(), report, root_base };
    if let Value::Object(object) = root {
        search.members(object, root_base, &Location::Root);
    }
    search.ids
}

struct Search<'r, 's> {
    ids: SchemaIds<'s>,
    report: &'r mut Report,
    root_base: &'r str,
}

impl<'s> Search<'_, 's> {
    fn value(&mut self, value: &'s Value, base: &str, location: &Location<'_>) {
        let Value::Object(object) = value else { return };
        let own_base = match object.get("$id") {
            Some(Value::String(id)) => self.register(value, id, base, &location.key("$id")),
            _ => None,
        };
        let base = own_base.as_deref().unwrap_or(base);
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = object.get(keyword) {
                let at = location.key(keyword);
                if !is_anchor(name) {
                    self.report.invalid(
                        &at,
                        format!(
                            "`{keyword}` must be a plain name (letters, digits, `-`, `.`, `_`), got `{name}`"
                        ),
                    );
                }
                self.register(value, &format!("#{name}"), base, &at);
            }
        }
        self.members(object, base, location);
    }

    fn members(&mut self, object: &'s Map<String, Value>, base: &str, location: &Location<'_>) {
        for (key, member) in object {
            let at = location.key(key);
            match (key.as_str(), member) {
                ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        self.value(item, base, &at.index(index));
                    }
                }
                (
                    "$defs" | "definitions" | "properties" | "patternProperties" | "dependencies",
                    Value::Object(map),
                ) => {
                    for (name, schema) in map {
                        self.value(schema, base, &at.key(name));
                    }
                }
                (key, Value::Object(_)) if !is_data(key) => self.value(member, base, &at),
                _ => {}
            }
        }
    }

    /// Records the schema under its resolved name and returns that name.
    fn register(&mut self, schema: &'s Value, id: &str, base: &str, at: &Location<'_>) -> Option<String> {
        let resolved = if base.is_empty() { Some(id.to_owned()) } else { uri::resolve(base, id) };
        let Some(name) = resolved.map(|name| uri::normalize_id(&name).to_owned()) else {
            self.report.invalid(
                at,
                format!(
                    "`{id}` is not a valid URI reference: a `%` must be followed by two hexadecimal digits"
                ),
            );
            return None;
        };
        let is_taken = is_meta_schema(&name)
            || (!name.is_empty() && name == self.root_base)
            || self.ids.contains_key(&name);
        if is_taken {
            let message = format!("`{name}` names more than one schema");
            let problem = Problem::at_value("schema-ambiguous-id", at, message);
            self.report.add(problem.help("give each schema a unique name"));
        } else {
            let pointer = match at {
                Location::Key(owner, _) => owner.to_pointer(),
                _ => at.to_pointer(),
            };
            let own_base = if id.starts_with('#') { base.to_owned() } else { name.clone() };
            self.ids.insert(name.clone(), SchemaWithBase { schema, pointer, base: own_base });
        }
        Some(name)
    }
}

/// Whether Ajv's traversal treats an object below this keyword as data.
fn is_data(key: &str) -> bool {
    let Some(keyword) = Keyword::named(key) else { return false };
    match keyword.shape() {
        Shape::Any => matches!(keyword, Keyword::Default | Keyword::Const),
        shape => !matches!(
            shape,
            Shape::Schema | Shape::SchemaList | Shape::SchemaMap | Shape::Dependencies | Shape::TextListMap
        ),
    }
}
