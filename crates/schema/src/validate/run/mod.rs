//! Checks a value against compiled nodes, in Ajv's order. One walk serves two modes: reading, which
//! stops at the first failure, and filling, which inserts defaults and collects every error.

mod any;
mod array;
mod dependencies;
mod mode;
mod object;
mod scalar;
mod seen;
mod slots;

use serde_json::{Value, json};

use crate::validate::error::Error;
use crate::validate::node::{Arena, Id, Node, OfArray, OfObject, Types};
use crate::validate::path::{At, schema_path};
pub use mode::{Fill, Mode, Read};
use seen::Seen;
pub use slots::array_index;

/// After so many, more would only bury the first.
const MOST_ERRORS: usize = 100;
/// Schemas entered one inside the other. A value is at most 128 deep; the rest is for references
/// and applicators on the way, and small enough for the stack of any thread.
const MOST_DEPTH: usize = 1000;
/// Schemas entered in all, against references that fan out.
const MOST_VISITS: usize = 10_000_000;

pub struct Run<'c> {
    arena: &'c Arena,
    errors: Vec<Error>,
    /// Errors found, of which only the first are kept.
    count: usize,
    depth: usize,
    visits: usize,
    exhausted: bool,
    /// Resources on the way here, outermost first, where `$dynamicRef` looks.
    scope: Vec<u32>,
}

impl<'c> Run<'c> {
    pub fn new(arena: &'c Arena) -> Self {
        Self { arena, errors: Vec::new(), count: 0, depth: 0, visits: 0, exhausted: false, scope: Vec::new() }
    }

    /// Checks a whole value.
    pub fn root<M: Mode>(&mut self, data: M::Ref<'_>) -> bool {
        self.node::<M>(self.arena.root, data, &At::Root, None) && !self.exhausted
    }

    pub fn into_errors(self) -> Vec<Error> {
        if !self.exhausted {
            return self.errors;
        }
        vec![Error {
            instance_path: String::new(),
            schema_path: "#/$ref".to_owned(),
            keyword: "$ref",
            params: json!({}),
            message: "must not need so many nested references".to_owned(),
        }]
    }

    #[inline]
    fn node<M: Mode>(&mut self, id: Id, data: M::Ref<'_>, at: &At<'_>, seen: Option<&mut Seen<'c>>) -> bool {
        let Some(node) = self.arena.nodes.get(id as usize) else { return false };
        self.visits += 1;
        if node.is_leaf {
            let holds = node.leaf_holds(M::get(&data));
            if holds || !M::COLLECTS {
                return holds;
            }
        }
        self.walk::<M>(id, node, data, at, seen)
    }

    #[inline(never)]
    fn walk<M: Mode>(
        &mut self,
        id: Id,
        node: &'c Node,
        mut data: M::Ref<'_>,
        at: &At<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        self.exhausted |= self.depth >= MOST_DEPTH || self.visits > MOST_VISITS;
        if self.exhausted {
            return false;
        }
        self.depth += 1;
        let entered = !self.arena.dynamic.is_empty() && self.scope.last() != Some(&node.resource);
        if entered {
            self.scope.push(node.resource);
        }
        // What schemas beside this one have evaluated does not count for its `unevaluated…`.
        let mut own = node.tracks.then(Seen::default);
        let (seen, around) = if own.is_some() { (own.as_mut(), seen) } else { (seen, None) };
        let valid = self.rules::<M>(id, node, &mut data, at, seen);
        if let (Some(around), Some(own)) = (around, own) {
            around.merge(own);
        }
        if entered {
            self.scope.pop();
        }
        self.depth -= 1;
        valid
    }

    #[inline(always)]
    fn rules<M: Mode>(
        &mut self,
        id: Id,
        node: &'c Node,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        if node.never {
            return self
                .fail::<M>(id, at, "false schema", || (json!({}), "boolean schema is false".to_owned()));
        }
        let kind = Types::of(M::get(data));
        let mut wrong_type = node.types.0 != 0 && !node.types.takes_kind(kind, M::get(data));
        let mut valid = true;
        if wrong_type && (node.type_first || !M::COLLECTS) {
            valid = self.type_error::<M>(id, node, at);
            wrong_type = false;
        }
        for rule in &node.any {
            if !valid && !M::COLLECTS {
                return false;
            }
            valid &= self.any_rule::<M>(id, rule, data, at, seen.as_deref_mut());
        }
        // The error stands where the keywords of the missing type would have.
        let type_comes_first = wrong_type && node.types.0 < kind;
        if type_comes_first {
            valid = self.type_error::<M>(id, node, at);
        }
        if valid || M::COLLECTS {
            valid &= self.group::<M>(id, node, data, at, seen);
        }
        if wrong_type && !type_comes_first {
            valid = self.type_error::<M>(id, node, at);
        }
        valid
    }

    fn group<M: Mode>(
        &mut self,
        id: Id,
        node: &'c Node,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        match M::get(data) {
            Value::Number(value) => self.number::<M>(id, &node.number, value, at),
            Value::String(value) => self.string::<M>(id, &node.string, value, at),
            Value::Array(_) => match &node.array {
                Some(rules) => self.array::<M>(Keyworded { id, rules, at }, data, seen),
                None => true,
            },
            Value::Object(_) => match &node.object {
                Some(rules) => self.object::<M>(Keyworded { id, rules, at }, data, seen),
                None => true,
            },
            Value::Null | Value::Bool(_) => true,
        }
    }

    #[cold]
    #[inline(never)]
    fn type_error<M: Mode>(&mut self, id: Id, node: &Node, at: &At<'_>) -> bool {
        self.fail::<M>(id, at, "type", || {
            let kind = node.type_value.as_deref().cloned().unwrap_or_default();
            let text = match &kind {
                Value::String(name) => name.clone(),
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                _ => String::new(),
            };
            (json!({ "type": kind }), format!("must be {text}"))
        })
    }

    /// Notes a failed keyword; always `false`, so that a check can end with it.
    #[cold]
    #[inline(never)]
    fn fail<M: Mode>(
        &mut self,
        id: Id,
        at: &At<'_>,
        keyword: &'static str,
        detail: impl FnOnce() -> (Value, String),
    ) -> bool {
        if M::COLLECTS {
            self.count += 1;
            if self.errors.len() < MOST_ERRORS {
                let (params, message) = detail();
                let schema_path = schema_path(self.arena, id, keyword);
                self.errors.push(Error { instance_path: at.render(), schema_path, keyword, params, message });
            }
        }
        false
    }

    /// Forgets the errors found since there were so many.
    fn reset(&mut self, count: usize) {
        if self.count != count {
            self.count = count;
            self.errors.truncate(count);
        }
    }
}

/// The keywords of a node for one type, and where they are applied.
struct Keyworded<'k, 'c, R> {
    id: Id,
    rules: &'c R,
    at: &'k At<'k>,
}

impl<R> Clone for Keyworded<'_, '_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Keyworded<'_, '_, R> {}

type ArrayRules<'k, 'c> = Keyworded<'k, 'c, OfArray>;
type ObjectRules<'k, 'c> = Keyworded<'k, 'c, OfObject>;
