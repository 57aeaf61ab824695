//! Validates a value against a compiled schema, in Ajv's order.

mod evaluated;
mod mode;
mod present_properties;
mod validate_array;
mod validate_dependencies;
mod validate_logic;
mod validate_object;
mod validate_scalar;

use serde_json::{Value, json};

use super::compiled_schema::{CompiledSchema, Node, NodeId};
use super::error::ValidationError;
use super::schema_path::schema_path;
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
    /// What the schemas for the current instance have evaluated, if an `unevaluated…` keyword needs it.
    evaluated: Option<Box<Evaluated<'c>>>,
}

/// Where a keyword is applied: its node and the location of the instance.
#[derive(Clone, Copy)]
struct Position<'a> {
    node: NodeId,
    instance: &'a Location<'a>,
}

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

    /// Applies a schema to the current instance.
    #[inline]
    fn visit<M: Mode>(&mut self, id: NodeId, data: M::Ref<'_>, instance: &Location<'_>) -> bool {
        let Some(node) = self.schema.nodes.get(id as usize) else { return false };
        self.visits += 1;
        if node.is_leaf {
            let is_valid = node.leaf_accepts(&data);
            if is_valid || !M::COLLECTS {
                return is_valid;
            }
        }
        self.visit_node::<M>(node, data, Position { node: id, instance })
    }

    /// Applies a schema to a child of the current instance.
    #[inline]
    fn visit_child<M: Mode>(&mut self, id: NodeId, data: M::Ref<'_>, instance: &Location<'_>) -> bool {
        self.untracked(|validation| validation.visit::<M>(id, data, instance))
    }

    /// Runs without recording what is evaluated.
    #[inline]
    fn untracked<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.evaluated.take();
        let result = run(self);
        self.evaluated = outer;
        result
    }

    /// Runs a schema for the current instance; what it evaluates counts if the instance is valid.
    fn tracked_if_valid(&mut self, run: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.evaluated.is_none() {
            return run(self);
        }
        let outer = self.evaluated.replace(Box::default());
        let is_valid = run(self);
        let own = std::mem::replace(&mut self.evaluated, outer);
        if let (true, Some(outer), Some(own)) = (is_valid, &mut self.evaluated, own) {
            outer.merge(*own);
        }
        is_valid
    }

    #[inline(never)]
    fn visit_node<M: Mode>(&mut self, node: &'c Node, mut data: M::Ref<'_>, position: Position<'_>) -> bool {
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
            // What schemas beside this one have evaluated does not count for its `unevaluated…` keywords.
            let outer = self.evaluated.replace(Box::default());
            let is_valid = self.rules::<M>(node, &mut data, position);
            let own = std::mem::replace(&mut self.evaluated, outer);
            if let (Some(outer), Some(own)) = (&mut self.evaluated, own) {
                outer.merge(*own);
            }
            is_valid
        } else {
            self.rules::<M>(node, &mut data, position)
        };
        if enters_resource {
            self.dynamic_scope.pop();
        }
        self.depth -= 1;
        is_valid
    }

    #[inline]
    fn rules<M: Mode>(&mut self, node: &'c Node, data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        if node.is_false {
            let detail = || (json!({}), "boolean schema is false".to_owned());
            return self.fail::<M>(position, "false schema", detail);
        }
        let mut is_wrong_type = !node.types.is_empty() && !node.types.accepts(data);
        let mut is_valid = true;
        if is_wrong_type && (node.checks_type_first || !M::COLLECTS) {
            is_valid = self.type_error::<M>(node, position);
            is_wrong_type = false;
        }
        for rule in &node.any {
            if !is_valid && !M::COLLECTS {
                return false;
            }
            is_valid &= self.any_rule::<M>(rule, data, position);
        }
        // Ajv reports a wrong type in the place of the keywords for that type.
        let type_comes_first = is_wrong_type && node.types < TypeSet::of_value(data);
        if type_comes_first {
            is_valid = self.type_error::<M>(node, position);
        }
        if is_valid || M::COLLECTS {
            is_valid &= self.type_group::<M>(node, data, position);
        }
        if is_wrong_type && !type_comes_first {
            is_valid = self.type_error::<M>(node, position);
        }
        is_valid
    }

    /// The keywords for the type of the value.
    fn type_group<M: Mode>(&mut self, node: &'c Node, data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        match &**data {
            Value::Number(value) => self.number::<M>(node, value, position),
            Value::String(value) => self.string::<M>(node, value, position),
            Value::Array(_) => node.array.as_ref().is_none_or(|rules| self.array::<M>(rules, data, position)),
            Value::Object(_) => {
                node.object.as_ref().is_none_or(|rules| self.object::<M>(rules, data, position))
            }
            Value::Null | Value::Bool(_) => true,
        }
    }

    #[cold]
    #[inline(never)]
    fn type_error<M: Mode>(&mut self, node: &Node, position: Position<'_>) -> bool {
        self.fail::<M>(position, "type", || {
            let wanted = node.type_value.as_deref().cloned().unwrap_or_default();
            let text = match &wanted {
                Value::String(name) => name.clone(),
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                _ => String::new(),
            };
            (json!({ "type": wanted }), format!("must be {text}"))
        })
    }

    /// Records a failed keyword. Always `false`, so that a check can end with it.
    #[cold]
    #[inline(never)]
    fn fail<M: Mode>(
        &mut self,
        position: Position<'_>,
        keyword: &'static str,
        detail: impl FnOnce() -> (Value, String),
    ) -> bool {
        if M::COLLECTS {
            self.error_count += 1;
            if self.errors.len() < MAX_ERRORS {
                let (params, message) = detail();
                self.errors.push(ValidationError {
                    instance_path: position.instance.to_pointer(),
                    schema_path: schema_path(self.schema, position.node, keyword),
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
