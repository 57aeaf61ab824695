//! Where references lead: by pointer, by `$id` and by anchor, in the schema, in documents given
//! beside it and in the built-in meta-schemas. Follows Ajv's resolution where both agree to resolve.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::Value;

use super::dialect::Dialect;
use super::keyword::is_rule;
use crate::lint::uri;
use crate::validate::CompileError;

/// A schema and the URI that references in it start from.
#[derive(Clone)]
pub struct Found<'s> {
    pub schema: &'s Value,
    pub base: Rc<str>,
}

pub struct Anchored<'s> {
    pub name: &'s str,
    pub found: Found<'s>,
}

pub struct Documents<'s> {
    root: &'s Value,
    pub root_base: Rc<str>,
    others: &'s [(&'s str, &'s Value)],
    names: Option<HashMap<String, Found<'s>>>,
    /// Schemas with a `$dynamicAnchor`.
    pub anchored: Vec<Anchored<'s>>,
    knows_meta_schemas: bool,
    root_dialect: Dialect,
    /// Of documents and embedded schemas, where it is not the current draft.
    dialects: HashMap<Rc<str>, Dialect>,
}

/// So long a chain of nothing but references counts as endless.
const LONGEST_CHAIN: usize = 200;

impl<'s> Documents<'s> {
    pub fn new(root: &'s Value, others: &'s [(&'s str, &'s Value)]) -> Self {
        let id = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        Self {
            root,
            root_base: uri::normal_id(id).into(),
            others,
            names: None,
            anchored: Vec::new(),
            knows_meta_schemas: false,
            root_dialect: named_in(root, others).unwrap_or_default(),
            dialects: HashMap::new(),
        }
    }

    /// The dialect of the resource with this URI.
    pub fn dialect(&mut self, base: &Rc<str>) -> Dialect {
        if *base == self.root_base {
            return self.root_dialect;
        }
        self.index();
        self.dialects.get(base).copied().unwrap_or_default()
    }

    pub fn dialect_named(&self, uri: &str) -> Dialect {
        Dialect::named(uri, self.others)
    }

    pub fn resolve(&mut self, base: &Rc<str>, reference: &str) -> Result<Found<'s>, CompileError> {
        let found = if base == &self.root_base && matches!(reference, "#" | "#/") {
            Some(self.root_place())
        } else {
            self.search(base, reference, 0)
        };
        found.ok_or_else(|| CompileError::new(format!("can't resolve reference {reference} from id {base}")))
    }

    fn root_place(&self) -> Found<'s> {
        Found { schema: self.root, base: Rc::clone(&self.root_base) }
    }

    fn search(&mut self, base: &Rc<str>, reference: &str, chain: usize) -> Option<Found<'s>> {
        if chain > LONGEST_CHAIN {
            return None;
        }
        let found = match reference.strip_prefix("#/") {
            Some(steps) if base == &self.root_base => by_pointer(self.root_place(), steps)?,
            _ => {
                let name = uri::resolve(base, uri::normal_id(reference))?;
                self.by_name(&name, base)?
            }
        };
        // A schema that is nothing but a reference stands for its target.
        let Some(next) = bare_reference(found.schema) else { return Some(found) };
        let base = Rc::clone(&found.base);
        let Some(target) = self.search(&base, next, chain + 1) else { return Some(found) };
        // Except that dynamic references must know every resource on the way.
        let skips_resource = !self.anchored.is_empty() && target.base != found.base;
        Some(if skips_resource { found } else { target })
    }

    fn by_name(&mut self, name: &str, base: &Rc<str>) -> Option<Found<'s>> {
        if name == &*self.root_base {
            return Some(self.root_place());
        }
        self.index();
        let document = uri::document(name);
        if is_meta_schema(&document) {
            self.index_meta_schemas();
        }
        let names = self.names.as_ref()?;
        if let Some(found) = names.get(name) {
            return Some(found.clone());
        }
        let owner = if document == uri::document(&self.root_base) {
            self.root_place()
        } else {
            names.get(&document).or_else(|| names.get(uri::normal_id(&document)))?.clone()
        };
        match uri::fragment(name) {
            None | Some("") => Some(owner),
            Some(fragment) => match fragment.strip_prefix('/') {
                Some(steps) => by_pointer(owner, steps),
                // Anchors without a document belong to wherever the reference stands.
                None => names.get(&format!("{base}#{fragment}")).cloned(),
            },
        }
    }

    /// Notes every named schema, the first time that a reference needs one.
    pub fn index(&mut self) {
        if self.names.is_some() {
            return;
        }
        self.names = Some(HashMap::new());
        let base = Rc::clone(&self.root_base);
        self.collect(self.root, &base, Dialect::default());
        for (uri, document) in self.others {
            let base: Rc<str> = uri::normal_id(uri).into();
            self.collect(document, &base, Dialect::default());
            let own = document.get("$id").and_then(Value::as_str).map(uri::normal_id);
            let own = own.and_then(|own| uri::resolve(&base, own));
            let found = Found { schema: document, base: own.map_or_else(|| Rc::clone(&base), Into::into) };
            if let Some(names) = &mut self.names {
                names.entry(base.to_string()).or_insert(found);
            }
        }
    }

    pub fn anchored_as(&mut self, name: &str) -> Vec<Found<'s>> {
        self.index();
        let same = self.anchored.iter().filter(|anchored| anchored.name == name);
        same.map(|anchored| anchored.found.clone()).collect()
    }

    fn index_meta_schemas(&mut self) {
        if !self.knows_meta_schemas {
            self.knows_meta_schemas = true;
            META_SCHEMAS.iter().for_each(|schema| self.collect(schema, &Rc::from(""), Dialect::default()));
        }
    }

    fn collect(&mut self, schema: &'s Value, base: &Rc<str>, dialect: Dialect) {
        let Value::Object(object) = schema else { return };
        let mut base = Rc::clone(base);
        if let Some(Value::String(id)) = object.get("$id")
            && let Some(resolved) = uri::resolve(&base, uri::normal_id(id))
        {
            base = resolved.into();
        }
        let dialect = named_in(schema, self.others).unwrap_or(dialect);
        if dialect != Dialect::default() {
            self.dialects.insert(Rc::clone(&base), dialect);
        }
        let found = Found { schema, base: Rc::clone(&base) };
        let dynamic = object.get("$dynamicAnchor").and_then(Value::as_str);
        let plain = object.get("$anchor").and_then(Value::as_str);
        if let Some(names) = &mut self.names {
            if object.contains_key("$id") || !names.contains_key(&*base) {
                names.entry(uri::document(&base)).or_insert_with(|| found.clone());
                names.entry(base.to_string()).or_insert_with(|| found.clone());
            }
            for anchor in dynamic.iter().chain(&plain) {
                names.entry(format!("{base}#{anchor}")).or_insert_with(|| found.clone());
            }
        }
        if let Some(name) = dynamic {
            self.anchored.push(Anchored { name, found });
        }
        for (key, member) in object {
            self.collect_members(key, member, &base, dialect);
        }
    }

    fn collect_members(&mut self, key: &str, member: &'s Value, base: &Rc<str>, dialect: Dialect) {
        match (key, member) {
            ("items" | "prefixItems" | "allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                items.iter().for_each(|item| self.collect(item, base, dialect));
            }
            (
                "$defs" | "definitions" | "properties" | "patternProperties" | "dependencies"
                | "dependentSchemas",
                Value::Object(map),
            ) => map.values().for_each(|schema| self.collect(schema, base, dialect)),
            ("default" | "enum" | "const" | "examples" | "required", _) => {}
            (_, Value::Object(_)) => self.collect(member, base, dialect),
            _ => {}
        }
    }
}

fn named_in(schema: &Value, documents: &[(&str, &Value)]) -> Option<Dialect> {
    schema.get("$schema").and_then(Value::as_str).map(|uri| Dialect::named(uri, documents))
}

fn by_pointer<'s>(from: Found<'s>, steps: &str) -> Option<Found<'s>> {
    let Found { mut schema, mut base } = from;
    for step in steps.split('/') {
        let name = uri::decode_step(step)?;
        schema = match schema {
            Value::Object(object) => object.get(&name)?,
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
        let scoped =
            !matches!(step, "properties" | "patternProperties" | "enum" | "dependencies" | "definitions");
        if let Some(id) = schema.get("$id").and_then(Value::as_str)
            && scoped
        {
            base = uri::resolve(&base, uri::normal_id(id))?.into();
        }
    }
    (schema.is_object() || schema.is_boolean()).then_some(Found { schema, base })
}

fn bare_reference(schema: &Value) -> Option<&str> {
    let object = schema.as_object()?;
    let reference = object.get("$ref")?.as_str()?;
    object.keys().all(|name| name == "$ref" || !is_rule(name)).then_some(reference)
}

pub fn is_meta_schema(document: &str) -> bool {
    document.starts_with("https://json-schema.org/draft/2020-12/")
}

static META_SCHEMAS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let texts = [
        include_str!("../meta/schema.json"),
        include_str!("../meta/applicator.json"),
        include_str!("../meta/content.json"),
        include_str!("../meta/core.json"),
        include_str!("../meta/format-annotation.json"),
        include_str!("../meta/meta-data.json"),
        include_str!("../meta/unevaluated.json"),
        include_str!("../meta/validation.json"),
    ];
    texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
});
