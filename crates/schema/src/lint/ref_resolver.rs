//! Resolves a `$ref` by pointer, by `$id` and by anchor, against the base URI of the schema that contains it. Follows
//! Ajv's resolution step by step, including its infinite loops.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::schema_ids::{SchemaIds, SchemaWithBase};
use crate::keyword::is_rule;
use crate::pointer::push_pointer;
use crate::uri;

/// A base URI, by its number in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Base(usize);

impl Base {
    pub const ROOT: Self = Self(0);
}

#[derive(Clone)]
pub enum Target<'s> {
    Schema {
        schema: &'s Value,
        pointer: Rc<str>,
        base: Base,
    },
    /// One of the 2020-12 meta-schemas, which are built in.
    MetaSchema,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    NotFound,
    /// References that only refer to each other.
    Loop,
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
            Some(self.root_schema())
        } else if is_meta_schema(&name) {
            None
        } else if let Some(named) = self.ids.get(&name).cloned() {
            // A bare fragment is used as it is; other names are followed through bare references.
            let named = if name.starts_with('#') {
                SchemaWithBase { base: self.text(base).to_owned(), ..named }
            } else {
                self.follow(named, 0)?
            };
            Some(named)
        } else {
            self.by_document(&name, 0)?
        };
        Ok(match found {
            None => Target::MetaSchema,
            Some(named) => {
                let base = self.intern_base(named.base);
                Target::Schema { schema: named.schema, pointer: named.pointer.into(), base }
            }
        })
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

    /// Finds the document of a name, then the schema at the pointer within it; `None` for a meta-schema.
    fn by_document(&self, name: &str, chain: usize) -> Result<Option<SchemaWithBase<'s>>, Unresolved> {
        if chain > MAX_REF_CHAIN {
            return Err(Unresolved::Loop);
        }
        let document = uri::document(name);
        if document == uri::document(self.root_base()) {
            return self.by_pointer(uri::fragment(name), self.root_schema(), chain);
        }
        if is_meta_schema(&document) {
            return Ok(None);
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
    ) -> Result<Option<SchemaWithBase<'s>>, Unresolved> {
        let segments =
            fragment.and_then(|fragment| fragment.strip_prefix('/')).ok_or(Unresolved::NotFound)?;
        let SchemaWithBase { mut schema, mut pointer, mut base } = from;
        for segment in segments.split('/') {
            let name = uri::decode_segment(segment).ok_or(Unresolved::NotFound)?;
            schema = member(schema, &name).ok_or(Unresolved::NotFound)?;
            push_pointer(&mut pointer, &name);
            if let Some(id) = own_id(schema)
                && !keeps_base(segment)
            {
                base = uri::resolve(&base, uri::normalize_id(id)).ok_or(Unresolved::NotFound)?;
            }
        }
        if schema.is_null() {
            return Err(Unresolved::NotFound);
        }
        self.follow(SchemaWithBase { schema, pointer, base }, chain).map(Some)
    }

    /// Replaces a schema that is only a reference by its target.
    fn follow(&self, named: SchemaWithBase<'s>, chain: usize) -> Result<SchemaWithBase<'s>, Unresolved> {
        let Some(reference) = bare_reference(named.schema) else {
            return Ok(named);
        };
        let name = uri::resolve(&named.base, uri::normalize_id(reference)).ok_or(Unresolved::NotFound)?;
        match self.by_document(&name, chain + 1) {
            Ok(Some(target)) => Ok(target),
            // Reported at the second reference.
            Ok(None) | Err(Unresolved::NotFound) => Ok(named),
            Err(Unresolved::Loop) => Err(Unresolved::Loop),
        }
    }
}

pub fn is_meta_schema(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("https://json-schema.org/draft/2020-12/") else {
        return name == "http://json-schema.org/schema";
    };
    matches!(
        rest,
        "schema"
            | "meta/applicator"
            | "meta/unevaluated"
            | "meta/content"
            | "meta/core"
            | "meta/format-annotation"
            | "meta/meta-data"
            | "meta/validation"
    )
}

fn member<'s>(value: &'s Value, name: &str) -> Option<&'s Value> {
    match value {
        Value::Object(object) => object.get(name),
        Value::Array(items) => {
            let plain = name == "0" || !name.starts_with(['0', '+']);
            name.parse::<usize>().ok().filter(|_| plain).and_then(|index| items.get(index))
        }
        _ => None,
    }
}

fn own_id(schema: &Value) -> Option<&str> {
    schema.get("$id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// Whether a member called `$id` below this segment is data and not an id.
fn keeps_base(segment: &str) -> bool {
    matches!(segment, "properties" | "patternProperties" | "enum" | "dependencies" | "definitions")
}

fn bare_reference(schema: &Value) -> Option<&str> {
    let object: &Map<String, Value> = schema.as_object()?;
    let reference = object.get("$ref")?.as_str().filter(|reference| !reference.is_empty())?;
    object.keys().all(|name| name == "$ref" || !is_rule(name)).then_some(reference)
}
