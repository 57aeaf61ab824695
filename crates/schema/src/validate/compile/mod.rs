//! Compiles a schema into nodes. As in Ajv, a `$ref` whose target contains no reference is inlined, and any other target
//! becomes a function that is called. The difference shows in schema paths and in where defaults are filled in.

mod compile_array;
mod compile_logic;
mod compile_object;
mod compile_scalar;
mod dialect;
mod documents;
mod keyword_values;

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::CompileError;
use super::compiled_schema::{CompiledSchema, Node, NodeId, Remainder, SchemaLocation, Subschema};
use crate::keyword::{Keyword, Keywords, is_rule};
use crate::uri;
use dialect::Dialect;
use documents::Documents;

type Result<T> = std::result::Result<T, CompileError>;

pub fn compile(schema: &Value, others: &[(&str, &Value)]) -> Result<CompiledSchema> {
    let mut compiler = Compiler {
        compiled: CompiledSchema::default(),
        documents: Documents::new(schema, others),
        functions: HashMap::new(),
        inlined: HashMap::new(),
        resources: Vec::new(),
        queue: Vec::new(),
        calls_in_branches: false,
        anchors: Vec::new(),
    };
    let base = Rc::clone(&compiler.documents.root_base);
    compiler.compiled.root = compiler.function(schema, &base);
    // Functions wait in a queue, so that a long chain of references needs no stack.
    loop {
        while let Some(Function { id, schema, base }) = compiler.queue.pop() {
            // Ajv compiles its meta-schemas without defaults.
            let is_composite = documents::is_meta_schema(&base);
            let dialect = compiler.documents.dialect(&base);
            let scope = Scope { base, is_composite, dialect };
            compiler.compile_node(id, schema, &scope, SchemaLocation::Root)?;
        }
        if !compiler.add_dynamic_targets() {
            break;
        }
    }
    let mut compiled = compiler.compiled;
    compiled.fills_in_branches = compiled.has_defaults && compiler.calls_in_branches;
    Ok(compiled)
}

struct Compiler<'s> {
    compiled: CompiledSchema,
    documents: Documents<'s>,
    functions: HashMap<(*const Value, Rc<str>), NodeId>,
    /// By target, text of the reference and whether defaults are ignored there.
    inlined: HashMap<(*const Value, &'s str, bool), NodeId>,
    /// The base URIs; a node stores the index of its own.
    resources: Vec<Rc<str>>,
    queue: Vec<Function<'s>>,
    calls_in_branches: bool,
    /// The anchors that dynamic references name, each with a table of dynamic targets.
    anchors: Vec<&'s str>,
}

/// A schema that is compiled on its own.
struct Function<'s> {
    id: NodeId,
    schema: &'s Value,
    base: Rc<str>,
}

/// What a subschema inherits from the enclosing schema.
#[derive(Clone)]
struct Scope {
    base: Rc<str>,
    /// Inside `anyOf` and the like, where defaults are ignored.
    is_composite: bool,
    dialect: Dialect,
}

impl Scope {
    fn branch(&self) -> Self {
        Self { is_composite: true, ..self.clone() }
    }
}

/// Nodes of one schema; more are only needed by a schema that is meant to do harm.
const MAX_NODES: usize = 1_000_000;

/// Whether a schema accepts every instance.
fn allows_everything(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => !object.keys().any(|name| constrains(name)),
        other => *other != Value::Bool(false),
    }
}

/// Whether a keyword constrains an instance, in the current draft or an older one.
fn constrains(name: &str) -> bool {
    is_rule(name) || name == Keyword::AdditionalItems.name()
}

impl<'s> Compiler<'s> {
    /// The function of a schema, which is compiled later if it is new.
    fn function(&mut self, schema: &'s Value, base: &Rc<str>) -> NodeId {
        let key = (std::ptr::from_ref(schema), Rc::clone(base));
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let id = self.reserve();
        self.functions.insert(key, id);
        self.queue.push(Function { id, schema, base: Rc::clone(base) });
        id
    }

    fn reserve(&mut self) -> NodeId {
        self.compiled.nodes.push(Node::default());
        NodeId::try_from(self.compiled.nodes.len() - 1).unwrap_or(NodeId::MAX)
    }

    fn node(&mut self, schema: &'s Value, scope: &Scope, location: SchemaLocation) -> Result<NodeId> {
        if self.compiled.nodes.len() >= MAX_NODES {
            return Err(CompileError::new("the schema is too large once its references are expanded"));
        }
        let id = self.reserve();
        self.compile_node(id, schema, scope, location)?;
        Ok(id)
    }

    fn subschema(&mut self, schema: &'s Value, scope: &Scope, location: SchemaLocation) -> Result<Subschema> {
        if allows_everything(schema) {
            return Ok(Subschema::Always);
        }
        self.node(schema, scope, location).map(Subschema::Node)
    }

    /// The schemas of a list, such as the branches of `anyOf`.
    fn list(
        &mut self,
        id: NodeId,
        keyword: Keyword,
        schemas: &'s [Value],
        scope: &Scope,
    ) -> Result<Box<[Subschema]>> {
        let schemas = schemas.iter().enumerate();
        schemas
            .map(|(index, schema)| self.subschema(schema, scope, SchemaLocation::Index(id, keyword, index)))
            .collect()
    }

    /// An `additional…` or `unevaluated…` keyword.
    fn remainder(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        keyword: Keyword,
        scope: &Scope,
    ) -> Result<Option<Remainder>> {
        Ok(match keywords.get(keyword) {
            None => None,
            Some(Value::Bool(false)) => Some(Remainder::Forbidden),
            Some(schema) if allows_everything(schema) => Some(Remainder::Allowed),
            Some(schema) => {
                let location = SchemaLocation::Keyword(id, keyword);
                Some(Remainder::Schema(self.node(schema, scope, location)?))
            }
        })
    }

    fn compile_node(
        &mut self,
        id: NodeId,
        schema: &'s Value,
        scope: &Scope,
        location: SchemaLocation,
    ) -> Result<()> {
        let node = match schema {
            Value::Bool(allows) => Node { is_false: !allows, ..Node::default() },
            Value::Object(object) => {
                let mut keywords = Keywords::read(object, |_| {});
                // The target of a reference already has the base of its own `$id`.
                let is_target = matches!(location, SchemaLocation::Root | SchemaLocation::Reference(_));
                let own_scope = if is_target { None } else { self.embedded_resource(&keywords, scope) };
                let scope = own_scope.as_ref().unwrap_or(scope);
                scope.dialect.restrict(&mut keywords);
                self.object_schema(id, &keywords, scope)?
            }
            _ => {
                return Err(CompileError::new(format!(
                    "a schema must be an object or a boolean, got {schema}"
                )));
            }
        };
        if let Some(slot) = self.compiled.nodes.get_mut(id as usize) {
            *slot = Node { location, is_leaf: node.constrains_scalars_only(), ..node };
        }
        Ok(())
    }

    /// The scope of a schema with an `$id` of its own.
    fn embedded_resource(&self, keywords: &Keywords<'s>, scope: &Scope) -> Option<Scope> {
        let id = keywords.get(Keyword::Id).and_then(Value::as_str)?;
        let base = uri::resolve(&scope.base, uri::normalize_id(id));
        let base = base.map_or_else(|| Rc::clone(&scope.base), Into::into);
        let named = keywords.get(Keyword::Schema).and_then(Value::as_str);
        let dialect = named.map_or(scope.dialect, |named| self.documents.dialect_named(named));
        Some(Scope { base, dialect, is_composite: scope.is_composite })
    }

    fn object_schema(&mut self, id: NodeId, keywords: &Keywords<'s>, scope: &Scope) -> Result<Node> {
        let declared = keyword_values::types(keywords)?;
        Ok(Node {
            checks_type_first: declared.are_checked_first(keywords),
            types: declared.types,
            type_value: keyword_values::type_in_errors(keywords, declared.types),
            tracks_evaluated: keywords.has(Keyword::UnevaluatedItems)
                || keywords.has(Keyword::UnevaluatedProperties),
            resource: self.resource(&scope.base),
            any: self.any(id, keywords, scope)?,
            number: compile_scalar::number(keywords)?,
            string: compile_scalar::string(keywords)?,
            array: self.array(id, keywords, scope)?,
            object: self.object(id, keywords, scope)?,
            ..Node::default()
        })
    }

    /// The index of a base URI.
    fn resource(&mut self, base: &Rc<str>) -> u32 {
        let known = self.resources.iter().position(|other| Rc::ptr_eq(other, base) || other == base);
        let index = known.unwrap_or_else(|| {
            self.resources.push(Rc::clone(base));
            self.resources.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}
