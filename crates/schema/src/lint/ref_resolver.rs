//! Resolves a `$ref` by pointer, by `$id` and by anchor, against the base URI of the schema that contains it. Follows
//! Ajv's resolution step by step, including its infinite loops.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::meta_schema::is_anchor;
use super::problem::{Problem, Report};
use crate::keyword::{Keyword, Shape};
use crate::pointer::{Location, push_pointer};
use crate::reference::{bare_reference, follow_pointer, is_meta_schema};
use crate::uri;

/// A base URI, by its number in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Base(usize);

impl Base {
    pub const ROOT: Self = Self(0);
}

/// A schema, its pointer in the document and the base URI of references in it.
#[derive(Clone)]
struct SchemaWithBase<'s> {
    schema: &'s Value,
    pointer: String,
    base: String,
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
    /// Schemas with an `$id`, `$anchor` or `$dynamicAnchor`.
    ids: HashMap<String, SchemaWithBase<'s>>,
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

    /// Collects the schemas with an `$id`, `$anchor` or `$dynamicAnchor`.
    pub fn collect_ids(&mut self, report: &mut Report) {
        let mut search = IdSearch { ids: HashMap::new(), report, root_base: self.root_base() };
        if let Value::Object(object) = self.root {
            search.members(object, search.root_base, &Location::Root);
        }
        self.ids = search.ids;
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

/// Finds the schemas with names where Ajv's own traversal finds them (it does not enter every keyword).
struct IdSearch<'r, 's> {
    ids: HashMap<String, SchemaWithBase<'s>>,
    report: &'r mut Report,
    root_base: &'r str,
}

impl<'s> IdSearch<'_, 's> {
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
    let Some(keyword) = Keyword::from_name(key) else { return false };
    match keyword.shape() {
        Shape::Any => matches!(keyword, Keyword::Default | Keyword::Const),
        shape => !matches!(
            shape,
            Shape::Schema | Shape::SchemaList | Shape::SchemaMap | Shape::Dependencies | Shape::TextListMap
        ),
    }
}
