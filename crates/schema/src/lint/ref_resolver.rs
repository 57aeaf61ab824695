//! Resolves a `$ref` by pointer, by `$id` and by anchor, against the base URI of the schema that contains it. Follows
//! Ajv's resolution step by step, including its infinite loops.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::schema_ids::{SchemaIds, SchemaWithBase};
use crate::pointer::push_pointer;
use crate::reference::{bare_reference, follow_pointer, is_meta_schema};
use crate::uri;

/// A base URI, by its number in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Base(usize);

impl Base {
    pub const ROOT: Self = Self(0);
}

/// The schema that a reference names.
#[derive(Clone)]
pub struct Target<'s> {
    pub schema: &'s Value,
    pub pointer: Rc<str>,
    pub base: Base,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    NotFound,
    /// References that only refer to each other.
    Loop,
    /// One of the 2020-12 meta-schemas, which are built in and not part of the document.
    MetaSchema,
}

pub struct RefResolver<'s> {
    root: &'s Value,
    bases: Vec<String>,
    ids: SchemaIds<'s>,
    /// Results by base and reference.
    cache: HashMap<(Base, &'s str), Result<Target<'s>, Unresolved>>,
}

/// Ajv follows bare references by recursion and overflows its stack on a loop; a longer chain counts as a loop here.
const MAX_REF_CHAIN: usize = 200;

impl<'s> RefResolver<'s> {
    pub fn new(root: &'s Value) -> Self {
        let id = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        Self {
            root,
            bases: vec![uri::normalize_id(id).to_owned()],
            ids: HashMap::new(),
            cache: HashMap::new(),
        }
    }

    pub fn with_ids(mut self, ids: SchemaIds<'s>) -> Self {
        self.ids = ids;
        self
    }

    pub fn root_base(&self) -> &str {
        self.text(Base::ROOT)
    }

    fn text(&self, base: Base) -> &str {
        self.bases.get(base.0).map_or("", String::as_str)
    }

    /// The base URI inside a schema that has an `$id`; `None` when the id is malformed.
    pub fn base_with_id(&mut self, base: Base, id: &str) -> Option<Base> {
        let text = uri::resolve(self.text(base), uri::normalize_id(id))?;
        Some(self.intern_base(text))
    }

    fn intern_base(&mut self, text: String) -> Base {
        let number = self.bases.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.bases.push(text);
            self.bases.len() - 1
        });
        Base(number)
    }

    pub fn resolve(&mut self, base: Base, reference: &'s str) -> Result<Target<'s>, Unresolved> {
        if let Some(cached) = self.cache.get(&(base, reference)) {
            return cached.clone();
        }
        let found = self.search(base, reference);
        self.cache.insert((base, reference), found.clone());
        found
    }

    fn search(&mut self, base: Base, reference: &str) -> Result<Target<'s>, Unresolved> {
        let name = uri::resolve(self.text(base), uri::normalize_id(reference)).ok_or(Unresolved::NotFound)?;
        let to_root = base == Base::ROOT && matches!(reference, "#" | "#/");
        let found = if to_root || name == self.root_base() {
            self.root_schema()
        } else if is_meta_schema(&name) {
            return Err(Unresolved::MetaSchema);
        } else if let Some(named) = self.ids.get(&name).cloned() {
            // A bare fragment is used as it is; other names are followed through bare references.
            if name.starts_with('#') {
                SchemaWithBase { base: self.text(base).to_owned(), ..named }
            } else {
                self.follow(named, 0)?
            }
        } else {
            self.by_document(&name, 0)?
        };
        let base = self.intern_base(found.base);
        Ok(Target { schema: found.schema, pointer: found.pointer.into(), base })
    }

    /// The definition of the root whose name is nearest to a misspelt one.
    pub fn nearest_definition(&self, wanted: &str) -> Option<String> {
        ["$defs", "definitions"].into_iter().find_map(|keyword| {
            let names = self.root.get(keyword)?.as_object()?.keys().map(String::as_str);
            toolwright_contract::suggest::nearest(wanted, names).map(|name| format!("#/{keyword}/{name}"))
        })
    }

    fn root_schema(&self) -> SchemaWithBase<'s> {
        SchemaWithBase { schema: self.root, pointer: String::new(), base: self.root_base().to_owned() }
    }

    /// Finds the document of a name, then the schema at the pointer within it.
    fn by_document(&self, name: &str, chain: usize) -> Result<SchemaWithBase<'s>, Unresolved> {
        if chain > MAX_REF_CHAIN {
            return Err(Unresolved::Loop);
        }
        let document = uri::document(name);
        if document == uri::document(self.root_base()) {
            return self.by_pointer(uri::fragment(name), self.root_schema(), chain);
        }
        if is_meta_schema(&document) {
            return Err(Unresolved::MetaSchema);
        }
        let named = self.ids.get(&document).ok_or(Unresolved::NotFound)?;
        let named = self.follow(named.clone(), chain + 1)?;
        if !named.schema.is_object() {
            return Err(Unresolved::NotFound);
        }
        self.by_pointer(uri::fragment(name), named, chain)
    }

    fn by_pointer(
        &self,
        fragment: Option<&str>,
        from: SchemaWithBase<'s>,
        chain: usize,
    ) -> Result<SchemaWithBase<'s>, Unresolved> {
        let segments = fragment.and_then(|fragment| fragment.strip_prefix('/'));
        let mut pointer = from.pointer;
        let push = |segment: &str| push_pointer(&mut pointer, segment);
        let found = segments.and_then(|segments| follow_pointer(from.schema, &from.base, segments, push));
        let (schema, base) = found.filter(|(schema, _)| !schema.is_null()).ok_or(Unresolved::NotFound)?;
        self.follow(SchemaWithBase { schema, pointer, base }, chain)
    }

    /// Replaces a schema that is only a reference by its target.
    fn follow(&self, named: SchemaWithBase<'s>, chain: usize) -> Result<SchemaWithBase<'s>, Unresolved> {
        let Some(reference) = bare_reference(named.schema) else {
            return Ok(named);
        };
        let name = uri::resolve(&named.base, uri::normalize_id(reference)).ok_or(Unresolved::NotFound)?;
        match self.by_document(&name, chain + 1) {
            // Reported at the second reference.
            Err(Unresolved::NotFound | Unresolved::MetaSchema) => Ok(named),
            found => found,
        }
    }
}
