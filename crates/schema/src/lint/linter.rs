//! Visits the schemas that Ajv would compile, in the same order and with the same context. The rules of the keywords
//! are in the files beside this one.

use std::collections::HashMap;

use serde_json::Value;

use super::lint_help;
use super::problem::{Problem, Report};
use super::ref_resolver::{Base, RefResolver};
use super::scope::{Evaluated, EvaluatedExtent, KnownProperties, Scope};
use crate::keyword::{Keyword, Keywords};
use crate::pointer::{Location, Part};
use crate::types::TypeSet;

/// A schema object that is being visited.
pub struct SchemaVisit<'s, 'p> {
    pub value: &'s Value,
    pub keywords: Keywords<'s>,
    pub location: &'p Location<'p>,
}

impl<'s, 'p> SchemaVisit<'s, 'p> {
    pub fn get(&self, keyword: Keyword) -> Option<&'s Value> {
        self.keywords.get(keyword)
    }

    pub fn has(&self, keyword: Keyword) -> bool {
        self.keywords.has(keyword)
    }

    /// The members of a keyword whose value is an object.
    pub fn members(&self, keyword: Keyword) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
        self.get(keyword).and_then(Value::as_object).into_iter().flatten()
    }

    /// The location of a member.
    pub fn key(&self, name: &'p str) -> Location<'p> {
        self.location.key(name)
    }
}

/// The target of each `$ref` and its own pointer, by the address of the keyword's value.
pub type RefTargets<'s> = HashMap<usize, (&'s Value, String)>;

pub struct Linter<'s> {
    pub report: Report,
    pub resolver: RefResolver<'s>,
    pub known_properties: KnownProperties<'s>,
    /// Schemas compiled as functions, with what they evaluate; `None` while in progress.
    compiled: HashMap<(usize, Base), Option<Evaluated>>,
    /// Whether a schema contains references, by its address.
    pub has_references: HashMap<usize, bool>,
    pub targets: RefTargets<'s>,
    /// Compilations that are postponed because the stack is deep.
    postponed: Vec<(&'s Value, Base, String)>,
    depth: usize,
    /// Members visited so far.
    members: usize,
}

/// A schema with more members, counted over all visits, is refused.
const MAX_MEMBERS: usize = 4_000_000;

impl<'s> Linter<'s> {
    pub fn new(report: Report, resolver: RefResolver<'s>) -> Self {
        Self {
            report,
            resolver,
            known_properties: KnownProperties::default(),
            compiled: HashMap::new(),
            has_references: HashMap::new(),
            targets: HashMap::new(),
            postponed: Vec::new(),
            depth: 0,
            members: 0,
        }
    }

    /// Visits the whole schema.
    pub fn run(&mut self, schema: &'s Value) {
        self.compile(schema, Base::ROOT, &Location::Root);
        while let Some((schema, base, pointer)) = self.postponed.pop() {
            self.compile(schema, base, &Location::Pointer(&pointer));
        }
        if self.members > MAX_MEMBERS {
            let message = "the schema is too large once its `$ref`s are expanded";
            self.report.add(Problem::at_value("schema-unbounded-cost", &Location::Root, message));
        }
    }

    /// Reads a schema's keywords and reports those that strict mode does not know. `None` when the schema is no object
    /// or constrains nothing.
    fn read<'p>(&mut self, value: &'s Value, location: &'p Location<'p>) -> Option<SchemaVisit<'s, 'p>> {
        let object = value.as_object()?;
        self.members = self.members.saturating_add(object.len() + 1);
        let report = &mut self.report;
        let keywords = Keywords::read(object, |name| {
            let message = format!("unknown keyword `{name}`");
            let problem = Problem::at_key("schema-unknown-keyword", &location.key(name), message);
            report.add(problem.help_if(lint_help::for_keyword(name)));
        });
        keywords.has_rules().then_some(SchemaVisit { value, keywords, location })
    }

    /// Visits a schema for the same instance and returns what it evaluates.
    pub fn same_instance(&mut self, schema: &'s Value, scope: Scope, location: &Location<'_>) -> Evaluated {
        let Some(schema) = self.read(schema, location) else { return Evaluated::default() };
        let mut inner = Scope { is_inner: true, evaluated: Evaluated::default(), ..scope };
        self.inner(&schema, &mut inner);
        inner.evaluated
    }

    /// Visits a schema for a member, an item or a property name of the instance.
    pub fn child(&mut self, schema: &'s Value, scope: &mut Scope, kind: ChildKind, location: &Location<'_>) {
        let visit = self.read(schema, location);
        if visit.is_some() || *schema == Value::Bool(false) {
            // In Ajv, parent and child share a new set from here on.
            scope.known_properties = self.known_properties.new_set();
        }
        let Some(schema) = visit else { return };
        let mut inner = Scope {
            types: if kind == ChildKind::Name { TypeSet::STRING } else { TypeSet::NONE },
            composite: scope.composite || kind != ChildKind::Value,
            is_inner: true,
            evaluated: Evaluated::default(),
            ..*scope
        };
        self.inner(&schema, &mut inner);
    }

    fn inner(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        if let Some(Value::String(id)) = schema.get(Keyword::Id)
            && !id.is_empty()
        {
            match self.resolver.base_with_id(scope.base, id) {
                Some(base) => scope.base = base,
                None => self
                    .report
                    .invalid(&schema.key("$id"), format!("`$id` `{id}` is not a valid URI reference")),
            }
        }
        if schema.get(Keyword::Async).is_some_and(is_truthy) && !scope.is_async {
            let message = "`$async` is not allowed inside a synchronous schema";
            let problem = Problem::at_key("schema-async", &schema.key("$async"), message);
            self.report.add(problem.help("remove `$async`"));
        }
        self.check_keywords(schema, scope);
    }

    /// All keywords of one schema, in the order of Ajv's rule groups.
    fn check_keywords(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        if self.members > MAX_MEMBERS || self.report.is_full() {
            return;
        }
        self.depth += 1;
        let types = self.own_types(schema);
        if schema.keywords.rules().all(|keyword| keyword == Keyword::Ref) {
            self.reference(schema, scope);
        } else {
            self.strict_types(schema, scope, types);
            self.any_group(schema, scope);
            self.format(schema);
            if let Some(Value::String(pattern)) = schema.get(Keyword::Pattern) {
                self.pattern(pattern, &schema.key("pattern"), Part::Value);
            }
            self.array_group(schema, scope);
            self.object_group(schema, scope);
        }
        self.depth -= 1;
    }

    /// Visits a schema that Ajv compiles as a function of its own, once.
    pub fn compile(&mut self, schema: &'s Value, base: Base, location: &Location<'_>) -> Evaluated {
        let key = (address(schema), base);
        if let Some(done) = self.compiled.get(&key) {
            return done.unwrap_or(Evaluated::both(EvaluatedExtent::Dynamic));
        }
        if self.depth > MAX_DEPTH {
            self.postponed.push((schema, base, location.to_pointer()));
            return Evaluated::both(EvaluatedExtent::Dynamic);
        }
        self.compiled.insert(key, None);
        let visit = self.read(schema, location);
        let evaluated = visit.map(|schema| self.function(&schema, base)).unwrap_or_default();
        self.compiled.insert(key, Some(evaluated));
        evaluated
    }

    fn function(&mut self, schema: &SchemaVisit<'s, '_>, base: Base) -> Evaluated {
        let mut scope = Scope {
            types: TypeSet::NONE,
            composite: false,
            known_properties: self.known_properties.new_set(),
            base,
            is_inner: false,
            is_async: schema.get(Keyword::Async).is_some_and(is_truthy),
            evaluated: Evaluated::default(),
        };
        if schema.has(Keyword::Default) {
            let is_root = matches!(schema.location, Location::Root);
            let owner = if is_root { "the whole schema" } else { "a referenced schema" };
            let message = format!("the `default` of {owner} is never filled in");
            let problem = Problem::at_key("schema-ignored-default", &schema.key("default"), message);
            self.report.add(problem.help("put `default` on the property itself, or remove it"));
        }
        self.check_keywords(schema, &mut scope);
        scope.evaluated
    }
}

/// Beyond this depth, referenced schemas are postponed.
const MAX_DEPTH: usize = 64;

/// How a schema applies to a child of the instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    Value,
    /// A value for which the schema is only tried.
    Tried,
    /// A property name.
    Name,
}

pub fn address<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<()>() as usize
}

/// As JavaScript decides it.
pub fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
#[path = "linter_tests.rs"]
mod tests;
