//! Resolves references by pointer, by `$id` and by anchor: in the schema, in the documents given beside it and in the
//! built-in meta-schemas.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::dialect::Dialect;
use crate::reference::{META_SCHEMAS, bare_reference, follow_pointer, is_meta_schema};
use crate::uri;
use crate::validate::CompileError;

/// A schema and the base URI of references in it.
#[derive(Clone)]
pub struct SchemaWithBase<'s> {
    pub schema: &'s Value,
    pub base: Rc<str>,
}

pub struct Documents<'s> {
    root: &'s Value,
    pub root_base: Rc<str>,
    pub others: &'s [(&'s str, &'s Value)],
    /// Schemas by URI, collected when a reference needs them.
    names: HashMap<String, SchemaWithBase<'s>>,
    is_indexed: bool,
    /// Schemas with a `$dynamicAnchor`, and its name.
    dynamic_anchors: Vec<(&'s str, SchemaWithBase<'s>)>,
    has_meta_schemas: bool,
    /// Dialects of documents and embedded schemas that do not use the current draft.
    dialects: HashMap<Rc<str>, Dialect>,
}

/// A longer chain of bare references counts as a loop.
const MAX_REF_CHAIN: usize = 200;

impl<'s> Documents<'s> {
    pub fn new(root: &'s Value, others: &'s [(&'s str, &'s Value)]) -> Self {
        let id = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        Self {
            root,
            root_base: uri::normalize_id(id).into(),
            others,
            names: HashMap::new(),
            is_indexed: false,
            dynamic_anchors: Vec::new(),
            has_meta_schemas: false,
            dialects: HashMap::new(),
        }
    }

    /// The dialect of the resource with this URI.
    pub fn dialect(&mut self, base: &Rc<str>) -> Dialect {
        if *base == self.root_base {
            return own_dialect(self.root, self.others).unwrap_or_default();
        }
        self.index();
        self.dialects.get(base).copied().unwrap_or_default()
    }

    pub fn resolve(&mut self, base: &Rc<str>, reference: &str) -> Result<SchemaWithBase<'s>, CompileError> {
        let found = if base == &self.root_base && matches!(reference, "#" | "#/") {
            Some(self.root_schema())
        } else {
            self.search(base, reference, 0)
        };
        found.ok_or_else(|| {
            CompileError::new(format!(
                "`$ref` `{reference}` does not resolve to a schema (base URI `{base}`)"
            ))
        })
    }

    fn root_schema(&self) -> SchemaWithBase<'s> {
        SchemaWithBase { schema: self.root, base: Rc::clone(&self.root_base) }
    }

    fn search(&mut self, base: &Rc<str>, reference: &str, chain: usize) -> Option<SchemaWithBase<'s>> {
        if chain > MAX_REF_CHAIN {
            return None;
        }
        let found = match reference.strip_prefix("#/") {
            Some(segments) if base == &self.root_base => by_pointer(&self.root_schema(), segments)?,
            _ => {
                let name = uri::resolve(base, uri::normalize_id(reference))?;
                self.by_name(&name, base)?
            }
        };
        // A schema that is only a reference is replaced by its target.
        let Some(next) = bare_reference(found.schema) else { return Some(found) };
        let base = Rc::clone(&found.base);
        let Some(target) = self.search(&base, next, chain + 1) else { return Some(found) };
        // Except where dynamic references need every resource on the way.
        let skips_resource = !self.dynamic_anchors.is_empty() && target.base != found.base;
        Some(if skips_resource { found } else { target })
    }

    fn by_name(&mut self, name: &str, base: &Rc<str>) -> Option<SchemaWithBase<'s>> {
        if name == &*self.root_base {
            return Some(self.root_schema());
        }
        self.index();
        let document = uri::document(name);
        if is_meta_schema(&document) {
            self.index_meta_schemas();
        }
        let names = &self.names;
        if let Some(found) = names.get(name) {
            return Some(found.clone());
        }
        let owner = if document == uri::document(&self.root_base) {
            self.root_schema()
        } else {
            names.get(&document).or_else(|| names.get(uri::normalize_id(&document)))?.clone()
        };
        match uri::fragment(name) {
            None | Some("") => Some(owner),
            Some(fragment) => match fragment.strip_prefix('/') {
                Some(segments) => by_pointer(&owner, segments),
                // An anchor without a document belongs to the resource of the reference.
                None => names.get(&format!("{base}#{fragment}")).cloned(),
            },
        }
    }

    /// Collects all named schemas, when a reference first needs one.
    fn index(&mut self) {
        if std::mem::replace(&mut self.is_indexed, true) {
            return;
        }
        let base = Rc::clone(&self.root_base);
        self.collect(self.root, &base, Dialect::default());
        for (uri, document) in self.others {
            let base: Rc<str> = uri::normalize_id(uri).into();
            self.collect(document, &base, Dialect::default());
            let own = document.get("$id").and_then(Value::as_str).map(uri::normalize_id);
            let own = own.and_then(|own| uri::resolve(&base, own));
            let found =
                SchemaWithBase { schema: document, base: own.map_or_else(|| Rc::clone(&base), Into::into) };
            self.names.entry(base.to_string()).or_insert(found);
        }
    }

    pub fn with_dynamic_anchor(&mut self, name: &str) -> Vec<SchemaWithBase<'s>> {
        self.index();
        let same = self.dynamic_anchors.iter().filter(|(anchor, _)| *anchor == name);
        same.map(|(_, found)| found.clone()).collect()
    }

    fn index_meta_schemas(&mut self) {
        if !std::mem::replace(&mut self.has_meta_schemas, true) {
            META_SCHEMAS.iter().for_each(|schema| self.collect(schema, &Rc::from(""), Dialect::default()));
        }
    }

    fn collect(&mut self, schema: &'s Value, base: &Rc<str>, dialect: Dialect) {
        let Value::Object(object) = schema else { return };
        let mut base = Rc::clone(base);
        if let Some(Value::String(id)) = object.get("$id")
            && let Some(resolved) = uri::resolve(&base, uri::normalize_id(id))
        {
            base = resolved.into();
        }
        let dialect = own_dialect(schema, self.others).unwrap_or(dialect);
        if dialect != Dialect::default() {
            self.dialects.insert(Rc::clone(&base), dialect);
        }
        let found = SchemaWithBase { schema, base: Rc::clone(&base) };
        let dynamic = object.get("$dynamicAnchor").and_then(Value::as_str);
        let plain = object.get("$anchor").and_then(Value::as_str);
        if object.contains_key("$id") || !self.names.contains_key(&*base) {
            self.names.entry(uri::document(&base)).or_insert_with(|| found.clone());
            self.names.entry(base.to_string()).or_insert_with(|| found.clone());
        }
        for anchor in dynamic.iter().chain(&plain) {
            self.names.entry(format!("{base}#{anchor}")).or_insert_with(|| found.clone());
        }
        if let Some(name) = dynamic {
            self.dynamic_anchors.push((name, found));
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

fn own_dialect(schema: &Value, documents: &[(&str, &Value)]) -> Option<Dialect> {
    schema.get("$schema").and_then(Value::as_str).map(|uri| Dialect::from_name(uri, documents))
}

fn by_pointer<'s>(from: &SchemaWithBase<'s>, segments: &str) -> Option<SchemaWithBase<'s>> {
    let (schema, base) = follow_pointer(from.schema, &from.base, segments, |_| {})?;
    (schema.is_object() || schema.is_boolean()).then(|| SchemaWithBase { schema, base: base.into() })
}
