//! Compiles a schema into nodes. As in Ajv, a `$ref` whose target contains no reference is inlined, and any other
//! target becomes a function that is called. The difference shows in schema paths and in where defaults are filled in.

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
use crate::keyword::{Keyword, Keywords, has_rules};
use crate::reference::is_meta_schema;
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
        while let Some((id, schema, base)) = compiler.queue.pop() {
            // Ajv compiles its meta-schemas without defaults.
            let is_composite = is_meta_schema(&base);
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
    /// Schemas that are compiled as functions of their own, with their base URIs.
    queue: Vec<(NodeId, &'s Value, Rc<str>)>,
    calls_in_branches: bool,
    /// The anchors that dynamic references name, each with a table of dynamic targets.
    anchors: Vec<&'s str>,
}

/// The context that a subschema inherits from the enclosing schema.
#[derive(Clone)]
struct Scope {
    base: Rc<str>,
    /// Inside `anyOf` and the like, where defaults are ignored.
    is_composite: bool,
    dialect: Dialect,
}

/// A schema object that is being compiled.
#[derive(Clone, Copy)]
struct Source<'k, 's> {
    id: NodeId,
    keywords: &'k Keywords<'s>,
    scope: &'k Scope,
    /// The scope of schemas that are only tried.
    branch: &'k Scope,
}

impl Source<'_, '_> {
    /// The location of a member or item of a keyword's value.
    fn member(&self, keyword: Keyword, name: &str) -> SchemaLocation {
        SchemaLocation::Keyword(self.id, keyword, Some(name.into()))
    }
}

/// Nodes of one schema; more are only needed by a schema that is meant to do harm.
const MAX_NODES: usize = 1_000_000;

impl<'s> Compiler<'s> {
    /// The function of a schema, which is compiled later if it is new.
    fn function(&mut self, schema: &'s Value, base: &Rc<str>) -> NodeId {
        let key = (std::ptr::from_ref(schema), Rc::clone(base));
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let id = self.reserve();
        self.functions.insert(key, id);
        self.queue.push((id, schema, Rc::clone(base)));
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
        if has_rules(schema) { self.node(schema, scope, location).map(Some) } else { Ok(None) }
    }

    /// The schema that is the value of a keyword, if there is one.
    fn keyword_schema(
        &mut self,
        source: Source<'_, 's>,
        keyword: Keyword,
        scope: &Scope,
    ) -> Result<Option<Subschema>> {
        let location = SchemaLocation::Keyword(source.id, keyword, None);
        source.keywords.get(keyword).map(|schema| self.subschema(schema, scope, location)).transpose()
    }

    /// The schemas of a list, such as the branches of `anyOf`.
    fn list(
        &mut self,
        source: Source<'_, 's>,
        keyword: Keyword,
        scope: &Scope,
    ) -> Result<Option<Box<[Subschema]>>> {
        let Some(schemas) = source.keywords.array(keyword)? else { return Ok(None) };
        let compile = |(index, schema): (usize, &'s Value)| {
            self.subschema(schema, scope, source.member(keyword, &index.to_string()))
        };
        schemas.iter().enumerate().map(compile).collect::<Result<_>>().map(Some)
    }

    /// An `additional…` or `unevaluated…` keyword.
    fn remainder(&mut self, source: Source<'_, 's>, keyword: Keyword) -> Result<Option<Remainder>> {
        if source.keywords.get(keyword) == Some(&Value::Bool(false)) {
            return Ok(Some(Remainder::Forbidden));
        }
        Ok(self.keyword_schema(source, keyword, source.scope)?.map(Remainder::from))
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
        let dialect = named.map_or(scope.dialect, |named| Dialect::from_name(named, self.documents.others));
        Some(Scope { base, dialect, is_composite: scope.is_composite })
    }

    fn object_schema(&mut self, id: NodeId, keywords: &Keywords<'s>, scope: &Scope) -> Result<Node> {
        let declared = keywords.types()?;
        let branch = Scope { is_composite: true, ..scope.clone() };
        let source = Source { id, keywords, scope, branch: &branch };
        Ok(Node {
            checks_type_first: declared.are_checked_first(keywords),
            types: declared.types,
            type_value: keywords.type_in_errors(declared.types),
            tracks_evaluated: keywords.has(Keyword::UnevaluatedItems)
                || keywords.has(Keyword::UnevaluatedProperties),
            resource: self.resource(&scope.base),
            any: self.any(source)?,
            number: compile_scalar::number(keywords)?,
            string: compile_scalar::string(keywords)?,
            array: self.array(source)?,
            object: self.object(source)?,
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
