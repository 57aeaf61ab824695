//! Which schemas of a document have a name of their own: `$id`, `$anchor` and `$dynamicAnchor`,
//! found where Ajv's own traversal looks for them (which is not everywhere).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::meta::is_anchor;
use super::problem::{Part, Path, Report};
use super::uri;

/// A schema that can be named in a reference.
#[derive(Clone)]
pub struct Named<'s> {
    pub schema: &'s Value,
    pub pointer: String,
    pub base: String,
}

pub type Ids<'s> = HashMap<String, Named<'s>>;

pub fn collect<'s>(root: &'s Value, root_base: &str, report: &mut Report) -> Ids<'s> {
    let mut search = Search { ids: HashMap::new(), report, root_base };
    if let Value::Object(object) = root {
        search.members(object, root_base, &Path::Root);
    }
    search.ids
}

struct Search<'r, 's> {
    ids: Ids<'s>,
    report: &'r mut Report,
    root_base: &'r str,
}

impl<'s> Search<'_, 's> {
    fn value(&mut self, value: &'s Value, base: &str, path: &Path<'_>) {
        let Value::Object(object) = value else { return };
        let own_base = match object.get("$id") {
            Some(Value::String(id)) => self.register(value, id, base, &path.key("$id")),
            _ => None,
        };
        let base = own_base.as_deref().unwrap_or(base);
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = object.get(keyword) {
                let at = path.key(keyword);
                if !is_anchor(name) {
                    self.report.invalid(&at, format!("`{name}` is not a plain name"));
                }
                self.register(value, &format!("#{name}"), base, &at);
            }
        }
        self.members(object, base, path);
    }

    fn members(&mut self, object: &'s Map<String, Value>, base: &str, path: &Path<'_>) {
        for (key, member) in object {
            let at = path.key(key);
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
                (key, Value::Object(_)) if !is_skipped(key) => self.value(member, base, &at),
                _ => {}
            }
        }
    }

    /// Notes the schema under its resolved name and returns that name.
    fn register(&mut self, schema: &'s Value, id: &str, base: &str, at: &Path<'_>) -> Option<String> {
        let resolved = if base.is_empty() { Some(id.to_owned()) } else { uri::resolve(base, id) };
        let Some(name) = resolved.map(|name| uri::normal_id(&name).to_owned()) else {
            self.report.invalid(at, format!("`{id}` is not a valid URI reference"));
            return None;
        };
        let taken = super::refs::is_meta_schema(&name)
            || (!name.is_empty() && name == self.root_base)
            || self.ids.contains_key(&name);
        if taken {
            let message = format!("`{name}` names more than one schema");
            let help = Some("give each schema a name of its own".to_owned());
            self.report.add("schema-ambiguous-id", at, Part::Value, message, help);
        } else {
            let pointer = match at {
                Path::Key(owner, _) => owner.render(),
                _ => at.render(),
            };
            let own_base = if id.starts_with('#') { base.to_owned() } else { name.clone() };
            self.ids.insert(name.clone(), Named { schema, pointer, base: own_base });
        }
        Some(name)
    }
}

/// Keywords whose values Ajv's traversal takes for data.
fn is_skipped(key: &str) -> bool {
    matches!(
        key,
        "default"
            | "enum"
            | "const"
            | "required"
            | "maximum"
            | "minimum"
            | "exclusiveMaximum"
            | "exclusiveMinimum"
            | "multipleOf"
            | "maxLength"
            | "minLength"
            | "pattern"
            | "format"
            | "maxItems"
            | "minItems"
            | "uniqueItems"
            | "maxProperties"
            | "minProperties"
    )
}
