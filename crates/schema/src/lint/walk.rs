//! The strict walk: visits the schemas that Ajv would compile, in the order and with the context
//! with which it would compile them. What each keyword demands is in the files beside this one.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::defined::{Defined, Set};
use super::evaluated::{Evaluated, Seen};
use super::keyword::{Keyword, Node};
use super::problem::{Part, Path, Report};
use super::refs::{Base, Resolver};
use super::suggest;
use super::types::Types;

/// What a schema knows of its surroundings; Ajv calls it `it`.
#[derive(Clone, Copy)]
pub struct Scope {
    /// Types the instance can have here.
    pub types: Types,
    /// Below `anyOf`, `not` and their like, where defaults are not filled in.
    pub composite: bool,
    pub defined: Set,
    pub base: Base,
    pub root: Position,
    pub is_async: bool,
    pub evaluated: Evaluated,
}

/// Whether a schema is compiled as a function of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Position {
    Top,
    Inner,
}

pub struct Linter<'s> {
    pub report: Report,
    pub refs: Resolver<'s>,
    pub defined: Defined<'s>,
    /// Schemas compiled on their own, with what they evaluate once they are done.
    pub compiled: HashMap<(usize, Base), Option<Evaluated>>,
    /// Whether a reference's target holds references itself, by address.
    pub referring: HashMap<usize, bool>,
    /// Where each `$ref` leads, by the address of its value.
    pub targets: HashMap<usize, &'s Value>,
    /// Compilations put off because the stack is deep already.
    pub later: Vec<(&'s Value, Base, String)>,
    pub depth: usize,
    members: usize,
}

/// Members looked at, over all visits, before the walk gives up on a schema.
const MOST_MEMBERS: usize = 4_000_000;

impl<'s> Linter<'s> {
    pub fn new(report: Report, refs: Resolver<'s>) -> Self {
        Self {
            report,
            refs,
            defined: Defined::default(),
            compiled: HashMap::new(),
            referring: HashMap::new(),
            targets: HashMap::new(),
            later: Vec::new(),
            depth: 0,
            members: 0,
        }
    }

    /// Walks the whole schema.
    pub fn run(&mut self, schema: &'s Value) {
        self.compile(schema, Base::ROOT, &Path::Root);
        while let Some((schema, base, pointer)) = self.later.pop() {
            self.compile(schema, base, &Path::At(&pointer));
        }
        if self.members > MOST_MEMBERS {
            let message = "the schema grows too large when its references are written out".to_owned();
            self.report.add("schema-unbounded-cost", &Path::Root, Part::Value, message, None);
        }
    }

    /// Sorts a schema's members and reports those that strict mode does not know.
    pub fn open(&mut self, object: &'s Map<String, Value>, path: &Path<'_>) -> Node<'s> {
        self.members = self.members.saturating_add(object.len() + 1);
        let report = &mut self.report;
        Node::read(object, |name| {
            let message = format!("unknown keyword `{name}`");
            report.add(
                "schema-unknown-keyword",
                &path.key(name),
                Part::Key,
                message,
                suggest::for_keyword(name),
            );
        })
    }

    /// A schema for the same instance. `None` when it can refuse nothing.
    pub fn same(&mut self, schema: &'s Value, scope: Scope, path: &Path<'_>) -> Option<Evaluated> {
        let Value::Object(object) = schema else {
            return has_verdict(schema).then(Evaluated::default);
        };
        let node = self.open(object, path);
        if !node.has_rules() {
            return None;
        }
        let mut inner = Scope { root: Position::Inner, evaluated: Evaluated::default(), ..scope };
        self.inner(&node, &mut inner, schema, path);
        Some(inner.evaluated)
    }

    /// A schema for a member or item of the instance, or its name.
    pub fn child(&mut self, schema: &'s Value, scope: &mut Scope, child: Child, path: &Path<'_>) {
        let Value::Object(object) = schema else {
            if has_verdict(schema) {
                scope.defined = self.defined.fresh();
            }
            return;
        };
        let node = self.open(object, path);
        if !node.has_rules() {
            return;
        }
        // Ajv gives the parent a new set here and shares it with the child.
        scope.defined = self.defined.fresh();
        let mut inner = Scope {
            types: child.types,
            composite: scope.composite || child.composite,
            root: Position::Inner,
            evaluated: Evaluated::default(),
            ..*scope
        };
        self.inner(&node, &mut inner, schema, path);
    }

    fn inner(&mut self, node: &Node<'s>, scope: &mut Scope, schema: &'s Value, path: &Path<'_>) {
        if let Some(Value::String(id)) = node.get(Keyword::Id)
            && !id.is_empty()
        {
            match self.refs.base_of(scope.base, id) {
                Some(base) => scope.base = base,
                None => self.report.invalid(&path.key("$id"), format!("`{id}` is not a valid URI reference")),
            }
        }
        if node.get(Keyword::Async).is_some_and(is_truthy) && !scope.is_async {
            let message = "an asynchronous schema inside a synchronous one".to_owned();
            let help = Some("remove `$async`".to_owned());
            self.report.add("schema-async", &path.key("$async"), Part::Key, message, help);
        }
        self.keywords(node, scope, schema, path);
    }

    /// All keywords of one schema, in the order of Ajv's rule groups.
    pub fn keywords(&mut self, node: &Node<'s>, scope: &mut Scope, schema: &'s Value, path: &Path<'_>) {
        if self.members > MOST_MEMBERS || self.report.is_full() {
            return;
        }
        self.depth += 1;
        let types = self.own_types(node, path);
        if node.has(Keyword::Ref) && !node.has_rules_besides(Keyword::Ref) {
            self.reference(node, scope, path);
        } else {
            self.strict_types(node, scope, types, path);
            self.any_group(node, scope, schema, path);
            self.format(node, path);
            if let Some(Value::String(pattern)) = node.get(Keyword::Pattern) {
                self.pattern(pattern, &path.key("pattern"), Part::Value);
            }
            self.array_group(node, scope, path);
            self.object_group(node, scope, path);
        }
        self.depth -= 1;
    }

    /// Compiles a schema as a function of its own, once.
    pub fn compile(&mut self, schema: &'s Value, base: Base, path: &Path<'_>) -> Evaluated {
        let key = (address(schema), base);
        if let Some(done) = self.compiled.get(&key) {
            return done.unwrap_or(Evaluated::both(Seen::Dynamic));
        }
        if self.depth > DEEPEST {
            self.later.push((schema, base, path.render()));
            return Evaluated::both(Seen::Dynamic);
        }
        self.compiled.insert(key, None);
        let evaluated = match schema {
            Value::Object(object) => self.compile_object(object, schema, base, path),
            _ => Evaluated::default(),
        };
        self.compiled.insert(key, Some(evaluated));
        evaluated
    }

    fn compile_object(
        &mut self,
        object: &'s Map<String, Value>,
        schema: &'s Value,
        base: Base,
        path: &Path<'_>,
    ) -> Evaluated {
        let node = self.open(object, path);
        let mut scope = Scope {
            types: Types::NONE,
            composite: false,
            defined: self.defined.fresh(),
            base,
            root: Position::Top,
            is_async: node.get(Keyword::Async).is_some_and(is_truthy),
            evaluated: Evaluated::default(),
        };
        if !node.has_rules() {
            return scope.evaluated;
        }
        if node.has(Keyword::Default) {
            let root = matches!(path, Path::Root);
            let what = if root { "of the whole schema" } else { "of a referenced schema" };
            let message = format!("a default {what} is never filled in");
            let help = Some("put `default` on the property itself, or remove it".to_owned());
            self.report.add("schema-ignored-default", &path.key("default"), Part::Key, message, help);
        }
        self.keywords(&node, &mut scope, schema, path);
        scope.evaluated
    }
}

/// How deep the walk may nest before it puts referenced schemas off.
const DEEPEST: usize = 64;

/// What changes on the way from an instance to a part of it.
#[derive(Clone, Copy)]
pub struct Child {
    pub types: Types,
    pub composite: bool,
}

impl Child {
    pub const PLAIN: Self = Self { types: Types::NONE, composite: false };
    pub const COMPOSITE: Self = Self { types: Types::NONE, composite: true };
}

pub fn address<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<()>() as usize
}

/// `false` refuses everything; anything else that is not an object is not a schema.
fn has_verdict(schema: &Value) -> bool {
    matches!(schema, Value::Bool(false))
}

pub fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(verdict) => *verdict,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
