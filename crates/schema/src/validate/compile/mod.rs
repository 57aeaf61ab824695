//! Turns a schema into nodes. A `$ref` whose target holds no reference is written into its place,
//! any other target becomes a unit that is called: the difference shows in schema paths and in
//! where defaults are filled in, so it is Ajv's.

mod any;
mod array;
mod dialect;
mod documents;
mod keyword;
mod object;
mod read;
mod scalar;

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::lint::uri;
use crate::validate::CompileError;
use crate::validate::node::{Arena, Id, Node, Place, Sub, Sub2};
use dialect::Dialect;
use documents::Documents;
use keyword::{Keywords, always_valid};

type Done<T> = Result<T, CompileError>;

pub fn compile(schema: &Value, others: &[(&str, &Value)]) -> Done<Arena> {
    let documents = Documents::new(schema, others);
    let mut compiler = Compiler {
        arena: Arena::default(),
        documents,
        units: HashMap::new(),
        inlined: HashMap::new(),
        resources: Vec::new(),
        queue: Vec::new(),
        calls_in_branches: false,
        anchors: Vec::new(),
    };
    let base = Rc::clone(&compiler.documents.root_base);
    compiler.arena.root = compiler.unit(schema, &base);
    // Units wait in a queue, so that a long chain of references needs no stack.
    loop {
        while let Some(Unit { id, schema, base }) = compiler.queue.pop() {
            // Ajv compiles its meta-schemas without defaults.
            let composite = documents::is_meta_schema(&base);
            let dialect = compiler.documents.dialect(&base);
            compiler.fill(id, schema, &Scope { base, composite, dialect }, Place::Root)?;
        }
        if !compiler.add_dynamic_targets() {
            break;
        }
    }
    compiler.arena.fills_in_branches = compiler.arena.has_defaults && compiler.calls_in_branches;
    Ok(compiler.arena)
}

struct Compiler<'s> {
    arena: Arena,
    documents: Documents<'s>,
    units: HashMap<(*const Value, Rc<str>), Id>,
    /// By target, text of the reference and whether defaults are ignored there.
    inlined: HashMap<(*const Value, &'s str, bool), Id>,
    resources: Vec<Rc<str>>,
    queue: Vec<Unit<'s>>,
    calls_in_branches: bool,
    /// Names that dynamic references ask for; the arena has a table for each.
    anchors: Vec<&'s str>,
}

struct Unit<'s> {
    id: Id,
    schema: &'s Value,
    base: Rc<str>,
}

/// What a subschema takes over from the schema around it.
#[derive(Clone)]
struct Scope {
    base: Rc<str>,
    /// Inside `anyOf` and the like, where defaults are ignored.
    composite: bool,
    dialect: Dialect,
}

impl Scope {
    fn branch(&self) -> Self {
        Self { base: Rc::clone(&self.base), composite: true, dialect: self.dialect }
    }
}

/// The most nodes of one schema; beyond it, something generates schemas to do harm.
const MOST_NODES: usize = 1_000_000;

impl<'s> Compiler<'s> {
    /// The unit of a schema, which is compiled later if it is new.
    fn unit(&mut self, schema: &'s Value, base: &Rc<str>) -> Id {
        let key = (std::ptr::from_ref(schema), Rc::clone(base));
        if let Some(known) = self.units.get(&key) {
            return *known;
        }
        let id = self.reserve();
        self.units.insert(key, id);
        self.queue.push(Unit { id, schema, base: Rc::clone(base) });
        id
    }

    fn reserve(&mut self) -> Id {
        self.arena.nodes.push(Node::default());
        Id::try_from(self.arena.nodes.len() - 1).unwrap_or(Id::MAX)
    }

    fn node(&mut self, schema: &'s Value, scope: &Scope, place: Place) -> Done<Id> {
        if self.arena.nodes.len() >= MOST_NODES {
            return Err(CompileError::new("the schema is too large once its references are written out"));
        }
        let id = self.reserve();
        self.fill(id, schema, scope, place)?;
        Ok(id)
    }

    fn sub(&mut self, schema: &'s Value, scope: &Scope, place: Place) -> Done<Sub> {
        if always_valid(schema) { Ok(Sub::Always) } else { self.node(schema, scope, place).map(Sub::Node) }
    }

    fn sub2(&mut self, schema: &'s Value, scope: &Scope, place: Place) -> Done<Sub2> {
        Ok(match schema {
            Value::Bool(false) => Sub2::Never,
            schema if always_valid(schema) => Sub2::Always,
            schema => Sub2::Node(self.node(schema, scope, place)?),
        })
    }

    fn fill(&mut self, id: Id, schema: &'s Value, scope: &Scope, place: Place) -> Done<()> {
        let node = match schema {
            Value::Bool(allowed) => Node { never: !allowed, ..Node::default() },
            Value::Object(object) => {
                let mut words = Keywords::of(object);
                match words.id.and_then(Value::as_str) {
                    // The target of a reference comes with the base that its own `$id` gives it.
                    Some(own) if !matches!(place, Place::Root | Place::Reference(_)) => {
                        let base = uri::resolve(&scope.base, uri::normal_id(own));
                        let base = base.map_or_else(|| Rc::clone(&scope.base), Into::into);
                        let named = words.schema.and_then(Value::as_str);
                        let dialect =
                            named.map_or(scope.dialect, |named| self.documents.dialect_named(named));
                        dialect.restrict(&mut words);
                        self.object_schema(id, &words, &Scope { base, dialect, ..*scope })?
                    }
                    _ => {
                        scope.dialect.restrict(&mut words);
                        self.object_schema(id, &words, scope)?
                    }
                }
            }
            _ => return Err(CompileError::new("schema must be object or boolean")),
        };
        if let Some(slot) = self.arena.nodes.get_mut(id as usize) {
            *slot = Node { place, is_leaf: node.has_no_parts(), ..node };
        }
        Ok(())
    }

    fn object_schema(&mut self, id: Id, words: &Keywords<'s>, scope: &Scope) -> Done<Node> {
        let types = read::types(words)?;
        let any = self.any(id, words, scope)?;
        let number = scalar::number(words)?;
        let string = scalar::string(words)?;
        let array = self.array(id, words, scope)?;
        let object = self.object(id, words, scope)?;
        Ok(Node {
            type_first: types.are_checked_first(words),
            types: types.types,
            type_value: read::type_as_reported(words, types.types),
            tracks: words.unevaluated_items.is_some() || words.unevaluated_properties.is_some(),
            resource: self.resource(&scope.base),
            any,
            number,
            string,
            array,
            object,
            ..Node::default()
        })
    }

    /// The number of a base URI.
    fn resource(&mut self, base: &Rc<str>) -> u32 {
        let known = self.resources.iter().position(|other| Rc::ptr_eq(other, base) || other == base);
        let number = known.unwrap_or_else(|| {
            self.resources.push(Rc::clone(base));
            self.resources.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}
