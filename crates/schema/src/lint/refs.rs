//! Where a `$ref` leads: by pointer, by `$id` and by anchor, with the base URI of the schema it is
//! written in. Follows Ajv's resolution step by step, including its endless ones.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::ids::{Ids, Named};
use super::keyword::is_rule;
use super::problem::push_step;
use super::uri;

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
pub enum Missing {
    NotFound,
    /// References that only lead to each other.
    Loop,
}

pub struct Resolver<'s> {
    root: &'s Value,
    bases: Vec<String>,
    ids: Ids<'s>,
    known: HashMap<(Base, &'s str), Result<Target<'s>, Missing>>,
}

/// Ajv follows bare references by recursion and overflows its stack on endless ones; so long a chain
/// of nothing but references counts as endless here.
const LONGEST_CHAIN: usize = 200;

impl<'s> Resolver<'s> {
    pub fn new(root: &'s Value) -> Self {
        let id = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        Self { root, bases: vec![uri::normal_id(id).to_owned()], ids: HashMap::new(), known: HashMap::new() }
    }

    pub fn with_ids(mut self, ids: Ids<'s>) -> Self {
        self.ids = ids;
        self
    }

    pub fn root_base(&self) -> &str {
        self.text(Base::ROOT)
    }

    fn text(&self, base: Base) -> &str {
        self.bases.get(base.0).map_or("", String::as_str)
    }

    /// The base URI inside a schema that has an `$id`; `None` when that is malformed.
    pub fn base_of(&mut self, base: Base, id: &str) -> Option<Base> {
        let text = uri::resolve(self.text(base), uri::normal_id(id))?;
        Some(self.base(text))
    }

    fn base(&mut self, text: String) -> Base {
        let number = self.bases.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.bases.push(text);
            self.bases.len() - 1
        });
        Base(number)
    }

    pub fn resolve(&mut self, base: Base, reference: &'s str) -> Result<Target<'s>, Missing> {
        if let Some(known) = self.known.get(&(base, reference)) {
            return known.clone();
        }
        let found = self.search(base, reference);
        self.known.insert((base, reference), found.clone());
        found
    }

    fn search(&mut self, base: Base, reference: &str) -> Result<Target<'s>, Missing> {
        let name = uri::resolve(self.text(base), uri::normal_id(reference)).ok_or(Missing::NotFound)?;
        let to_root = base == Base::ROOT && matches!(reference, "#" | "#/");
        let place = if to_root || name == self.root_base() {
            Place::Here(self.root_place())
        } else if is_meta_schema(&name) {
            Place::MetaSchema
        } else if let Some(named) = self.ids.get(&name).cloned() {
            // A name without a document is taken as it is; others go on to where a bare
            // reference leads.
            let named = if name.starts_with('#') {
                Named { base: self.text(base).to_owned(), ..named }
            } else {
                self.follow(named, 0)?
            };
            Place::Here(named)
        } else {
            self.by_document(&name, 0)?
        };
        Ok(match place {
            Place::MetaSchema => Target::MetaSchema,
            Place::Here(named) => {
                let base = self.base(named.base);
                Target::Schema { schema: named.schema, pointer: named.pointer.into(), base }
            }
        })
    }

    /// The definition of the root whose name is closest to a misspelt one.
    pub fn nearest_definition(&self, wanted: &str) -> Option<String> {
        ["$defs", "definitions"].into_iter().find_map(|keyword| {
            let names = self.root.get(keyword)?.as_object()?.keys().map(String::as_str);
            toolwright_contract::suggest::nearest(wanted, names).map(|name| format!("#/{keyword}/{name}"))
        })
    }

    fn root_place(&self) -> Named<'s> {
        Named { schema: self.root, pointer: String::new(), base: self.root_base().to_owned() }
    }

    /// Finds the document of a name, then the pointer within it.
    fn by_document(&self, name: &str, chain: usize) -> Result<Place<'s>, Missing> {
        if chain > LONGEST_CHAIN {
            return Err(Missing::Loop);
        }
        let document = uri::document(name);
        if document == uri::document(self.root_base()) {
            return self.by_pointer(uri::fragment(name), self.root_place(), chain);
        }
        if is_meta_schema(&document) {
            return Ok(Place::MetaSchema);
        }
        let named = self.ids.get(&document).ok_or(Missing::NotFound)?;
        let named = self.follow(named.clone(), chain + 1)?;
        if !named.schema.is_object() {
            return Err(Missing::NotFound);
        }
        self.by_pointer(uri::fragment(name), named, chain)
    }

    fn by_pointer(
        &self,
        fragment: Option<&str>,
        from: Named<'s>,
        chain: usize,
    ) -> Result<Place<'s>, Missing> {
        let steps = fragment.and_then(|fragment| fragment.strip_prefix('/')).ok_or(Missing::NotFound)?;
        let Named { mut schema, mut pointer, mut base } = from;
        for step in steps.split('/') {
            let name = uri::decode_step(step).ok_or(Missing::NotFound)?;
            schema = member(schema, &name).ok_or(Missing::NotFound)?;
            push_step(&mut pointer, &name);
            if let Some(id) = own_id(schema)
                && !keeps_scope(step)
            {
                base = uri::resolve(&base, uri::normal_id(id)).ok_or(Missing::NotFound)?;
            }
        }
        if schema.is_null() {
            return Err(Missing::NotFound);
        }
        self.follow(Named { schema, pointer, base }, chain).map(Place::Here)
    }

    /// A schema that is nothing but a reference stands for its target.
    fn follow(&self, named: Named<'s>, chain: usize) -> Result<Named<'s>, Missing> {
        let Some(reference) = bare_reference(named.schema) else {
            return Ok(named);
        };
        let Some(name) = uri::resolve(&named.base, uri::normal_id(reference)) else {
            return Err(Missing::NotFound);
        };
        match self.by_document(&name, chain + 1) {
            Ok(Place::Here(target)) => Ok(target),
            // Left to be reported where the second reference stands.
            Ok(Place::MetaSchema) | Err(Missing::NotFound) => Ok(named),
            Err(Missing::Loop) => Err(Missing::Loop),
        }
    }
}

enum Place<'s> {
    Here(Named<'s>),
    MetaSchema,
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

/// Steps below which a member called `$id` is a name, not an id.
fn keeps_scope(step: &str) -> bool {
    matches!(step, "properties" | "patternProperties" | "enum" | "dependencies" | "definitions")
}

fn bare_reference(schema: &Value) -> Option<&str> {
    let object: &Map<String, Value> = schema.as_object()?;
    let reference = object.get("$ref")?.as_str().filter(|reference| !reference.is_empty())?;
    object.keys().all(|name| name == "$ref" || !is_rule(name)).then_some(reference)
}

#[cfg(test)]
#[path = "refs_tests.rs"]
mod tests;
