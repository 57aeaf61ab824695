//! Validates a value against a compiled schema, in Ajv's order.

mod evaluated;
mod mode;
mod validate_array;
mod validate_logic;
mod validate_object;
mod validate_scalar;

use serde_json::{Value, json};

use super::ValidationError;
use super::compiled_schema::{CompiledSchema, Node, NodeId, NumberRule, StringRule};
use crate::pointer::Location;
use crate::types::TypeSet;
use evaluated::Evaluated;
pub use mode::{CheckOnly, FillAndCollect, Mode};

/// Further errors are counted but not reported.
const MAX_ERRORS: usize = 100;
/// Schemas entered one inside the other. A value is at most 128 deep; the rest is for references and applicators, and
/// small enough for the stack of any thread.
const MAX_DEPTH: usize = 1000;
/// Schemas entered in total, against references that fan out.
const MAX_VISITS: usize = 10_000_000;

pub struct Validation<'c> {
    schema: &'c CompiledSchema,
    errors: Vec<ValidationError>,
    /// The number of errors, of which only the first are stored.
    error_count: usize,
    depth: usize,
    visits: usize,
    /// A limit was exceeded.
    is_exhausted: bool,
    /// Resources entered so far, outermost first: the dynamic scope of `$dynamicRef`.
    dynamic_scope: Vec<u32>,
    /// Everything that the schemas for the current instance have evaluated, if an `unevaluated…` keyword needs it.
    evaluated: Option<Box<Evaluated<'c>>>,
}

/// Where a keyword is applied: its node and the location of the instance.
#[derive(Clone, Copy)]
struct Position<'l> {
    node: NodeId,
    location: &'l Location<'l>,
}

/// The value that a schema is applied to.
struct Instance<'d, 'l, M: Mode> {
    data: M::Ref<'d>,
    position: Position<'l>,
}

/// The keyword, parameters and message of an error.
type Violation = (&'static str, Value, String);

impl<'c> Validation<'c> {
    pub fn new(schema: &'c CompiledSchema) -> Self {
        Self {
            schema,
            errors: Vec::new(),
            error_count: 0,
            depth: 0,
            visits: 0,
            is_exhausted: false,
            dynamic_scope: Vec::new(),
            evaluated: None,
        }
    }

    /// Validates a whole value.
    pub fn run<M: Mode>(&mut self, data: M::Ref<'_>) -> bool {
        self.visit::<M>(self.schema.root, data, &Location::Root) && !self.is_exhausted
    }

    pub fn into_errors(self) -> Vec<ValidationError> {
        if !self.is_exhausted {
            return self.errors;
        }
        vec![ValidationError {
            instance_path: String::new(),
            schema_path: "#/$ref".to_owned(),
            keyword: "$ref",
            params: json!({}),
            message: "must not need so many nested references".to_owned(),
        }]
    }

    #[inline]
    fn visit<M: Mode>(&mut self, id: NodeId, data: M::Ref<'_>, location: &Location<'_>) -> bool {
        let Some(node) = self.schema.nodes.get(id as usize) else { return false };
        self.visits += 1;
        if node.is_leaf {
            let is_valid = node.leaf_accepts(&data);
            if is_valid || !M::COLLECTS {
                return is_valid;
            }
        }
        self.visit_node::<M>(node, Instance { data, position: Position { node: id, location } })
    }

    /// Applies a schema to the current instance.
    fn apply<M: Mode>(&mut self, id: NodeId, instance: &mut Instance<'_, '_, M>) -> bool {
        self.visit::<M>(id, M::reborrow(&mut instance.data), instance.position.location)
    }

    /// Applies a schema to a child of the current instance.
    #[inline]
    fn visit_child<M: Mode>(&mut self, id: NodeId, data: M::Ref<'_>, location: &Location<'_>) -> bool {
        self.without_tracking(|validation| validation.visit::<M>(id, data, location))
    }

    /// Runs without recording what is evaluated.
    #[inline]
    fn without_tracking<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.evaluated.take();
        let result = run(self);
        self.evaluated = outer;
        result
    }

    /// Runs a schema for the current instance; what it evaluates counts if the instance is valid.
    fn tracked_if_valid(&mut self, run: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.evaluated.is_some() { self.with_tracking(run, |is_valid| is_valid) } else { run(self) }
    }

    /// Runs with a record of its own, which is added to the outer one if the result `counts`.
    fn with_tracking(&mut self, run: impl FnOnce(&mut Self) -> bool, counts: fn(bool) -> bool) -> bool {
        let outer = self.evaluated.replace(Box::default());
        let is_valid = run(self);
        let own = std::mem::replace(&mut self.evaluated, outer);
        if let (true, Some(outer), Some(own)) = (counts(is_valid), &mut self.evaluated, own) {
            outer.merge(*own);
        }
        is_valid
    }

    #[inline(never)]
    fn visit_node<M: Mode>(&mut self, node: &'c Node, mut instance: Instance<'_, '_, M>) -> bool {
        self.is_exhausted |= self.depth >= MAX_DEPTH || self.visits > MAX_VISITS;
        if self.is_exhausted {
            return false;
        }
        self.depth += 1;
        let enters_resource =
            !self.schema.dynamic_targets.is_empty() && self.dynamic_scope.last() != Some(&node.resource);
        if enters_resource {
            self.dynamic_scope.push(node.resource);
        }
        let is_valid = if node.tracks_evaluated {
            // Its `unevaluated…` keywords ignore everything that schemas beside this one have evaluated.
            self.with_tracking(|validation| validation.rules(node, &mut instance), |_| true)
        } else {
            self.rules(node, &mut instance)
        };
        if enters_resource {
            self.dynamic_scope.pop();
        }
        self.depth -= 1;
        is_valid
    }

    #[inline]
    fn rules<M: Mode>(&mut self, node: &'c Node, instance: &mut Instance<'_, '_, M>) -> bool {
        let position = instance.position;
        if node.is_false {
            let detail = || ("false schema", json!({}), "boolean schema is false".to_owned());
            return self.fail::<M>(position, detail);
        }
        let mut is_wrong_type = !node.types.is_empty() && !node.types.accepts(&instance.data);
        let mut is_valid = true;
        if is_wrong_type && (node.checks_type_first || !M::COLLECTS) {
            is_valid = self.type_error::<M>(node, position);
            is_wrong_type = false;
        }
        is_valid = M::and(is_valid, || M::all(node.any.iter(), |rule| self.any_rule(rule, instance)));
        // Ajv reports a wrong type in the place of the keywords for that type.
        let type_comes_first = is_wrong_type && node.types < TypeSet::of_value(&instance.data);
        if type_comes_first {
            is_valid = self.type_error::<M>(node, position);
        }
        is_valid = M::and(is_valid, || self.type_group(node, instance));
        if is_wrong_type && !type_comes_first {
            is_valid = self.type_error::<M>(node, position);
        }
        is_valid
    }

    /// The keywords for the type of the value.
    fn type_group<M: Mode>(&mut self, node: &'c Node, instance: &mut Instance<'_, '_, M>) -> bool {
        let position = instance.position;
        match &*instance.data {
            Value::Number(value) => {
                let accepts = |rule: &NumberRule| rule.accepts(value);
                self.scalar::<M, _>(&node.number, accepts, NumberRule::violation, position)
            }
            Value::String(value) => {
                let accepts = |rule: &StringRule| rule.accepts(value);
                self.scalar::<M, _>(&node.string, accepts, StringRule::violation, position)
            }
            Value::Array(_) => node.array.as_ref().is_none_or(|rules| self.array(rules, instance)),
            Value::Object(_) => node.object.as_ref().is_none_or(|rules| self.object(rules, instance)),
            Value::Null | Value::Bool(_) => true,
        }
    }

    #[cold]
    #[inline(never)]
    fn type_error<M: Mode>(&mut self, node: &Node, position: Position<'_>) -> bool {
        self.fail::<M>(position, || {
            let wanted = node.type_value.as_deref().cloned().unwrap_or_default();
            let text = match &wanted {
                Value::String(name) => name.clone(),
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                _ => String::new(),
            };
            ("type", json!({ "type": wanted }), format!("must be {text}"))
        })
    }

    /// Records a failed keyword. Always `false`, so that a check can end with it.
    #[cold]
    #[inline(never)]
    fn fail<M: Mode>(&mut self, position: Position<'_>, violation: impl FnOnce() -> Violation) -> bool {
        if M::COLLECTS {
            self.error_count += 1;
            if self.errors.len() < MAX_ERRORS {
                let (keyword, params, message) = violation();
                self.errors.push(ValidationError {
                    instance_path: position.location.to_pointer(),
                    schema_path: self.schema.path(position.node, keyword),
                    keyword,
                    params,
                    message,
                });
            }
        }
        false
    }

    /// Discards the errors recorded since there were `count`.
    fn discard_errors_since(&mut self, count: usize) {
        if self.error_count != count {
            self.error_count = count;
            self.errors.truncate(count);
        }
    }
}
