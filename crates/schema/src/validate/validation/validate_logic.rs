//! Keywords for values of any type: references, `const`, `enum` and the logical applicators.

use serde_json::{Value, json};

use super::super::compiled_schema::{Condition, NodeId, Rule, Subschema};
use super::{CheckOnly, Mode, Position, Validation};
use crate::pointer::Location;

impl<'c> Validation<'c> {
    pub(super) fn any_rule<M: Mode>(
        &mut self,
        rule: &'c Rule,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        match rule {
            Rule::Reference(target) => self.visit::<M>(*target, M::reborrow(data), position.instance),
            Rule::DynamicReference(fixed, table) => {
                let target = self.dynamic_target(*table).unwrap_or(*fixed);
                self.visit::<M>(target, M::reborrow(data), position.instance)
            }
            Rule::Const(allowed) => {
                rule.equals(data)
                    || self.fail::<M>(position, "const", || {
                        (json!({ "allowedValue": allowed }), "must be equal to constant".to_owned())
                    })
            }
            Rule::Enum(allowed) => {
                rule.equals(data) || self.enum_error::<M>(position, || json!({ "allowedValues": allowed }))
            }
            Rule::StringEnum(allowed) => {
                rule.equals(data) || self.enum_error::<M>(position, || json!({ "allowedValues": allowed }))
            }
            Rule::Not(schema) => self.not::<M>(*schema, data, position),
            Rule::AnyOf(branches) => self.any_of::<M>(branches, data, position),
            Rule::OneOf(branches) => self.one_of::<M>(branches, data, position),
            Rule::AllOf(schemas) => self.all_of::<M>(schemas, data, position),
            Rule::If(condition) => self.condition::<M>(condition, data, position),
        }
    }

    /// The target in the outermost resource of the dynamic scope that has the anchor.
    fn dynamic_target(&self, table: usize) -> Option<NodeId> {
        let targets = self.schema.dynamic_targets.get(table)?;
        let in_resource = |resource: &u32| targets.iter().find(|(other, _)| other == resource);
        self.dynamic_scope.iter().find_map(in_resource).map(|(_, target)| *target)
    }

    fn enum_error<M: Mode>(&mut self, position: Position<'_>, params: impl FnOnce() -> Value) -> bool {
        let message = "must be equal to one of the allowed values";
        self.fail::<M>(position, "enum", || (params(), message.to_owned()))
    }

    /// Whether branches can be tried without collecting their errors. A called schema may fill in defaults in a branch;
    /// then branches run in full and their errors are discarded.
    const fn can_try<M: Mode>(&self) -> bool {
        !M::COLLECTS || !self.schema.fills_in_branches
    }

    fn subschema<M: Mode>(&mut self, schema: Subschema, data: M::Ref<'_>, instance: &Location<'_>) -> bool {
        match schema {
            Subschema::Always => true,
            Subschema::Node(id) => self.visit::<M>(id, data, instance),
        }
    }

    /// Decides one branch. If the branch could not merely be tried, the caller discards the errors that do not count.
    pub(super) fn try_subschema<M: Mode>(
        &mut self,
        schema: Subschema,
        data: &mut M::Ref<'_>,
        instance: &Location<'_>,
    ) -> bool {
        if self.can_try::<M>() {
            return self.subschema::<CheckOnly>(schema, data, instance);
        }
        self.subschema::<M>(schema, M::reborrow(data), instance)
    }

    /// Collects the errors of a branch that was only tried before. (A branch that ran in full is not run again: that
    /// would double the work at each level of a nested value.)
    pub(super) fn explain<M: Mode>(
        &mut self,
        schema: Subschema,
        data: &mut M::Ref<'_>,
        instance: &Location<'_>,
    ) {
        if M::COLLECTS && self.can_try::<M>() {
            self.untracked(|validation| validation.subschema::<M>(schema, M::reborrow(data), instance));
        }
    }

    /// Tries a branch; what it evaluates counts if the instance is valid.
    fn branch<M: Mode>(&mut self, schema: Subschema, data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        self.tracked_if_valid(|validation| validation.try_subschema::<M>(schema, data, position.instance))
    }

    #[inline(never)]
    fn not<M: Mode>(&mut self, schema: Subschema, data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        let before = self.error_count;
        let is_match =
            self.untracked(|validation| validation.try_subschema::<M>(schema, data, position.instance));
        self.discard_errors_since(before);
        !is_match || self.fail::<M>(position, "not", || (json!({}), "must NOT be valid".to_owned()))
    }

    #[inline(never)]
    fn any_of<M: Mode>(
        &mut self,
        branches: &[Subschema],
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let before = self.error_count;
        let mut is_valid = false;
        for branch in branches {
            is_valid |= self.branch::<M>(*branch, data, position);
            // Otherwise later branches still count for what is evaluated and filled in.
            if is_valid && self.evaluated.is_none() && self.can_try::<M>() {
                return true;
            }
        }
        if is_valid {
            self.discard_errors_since(before);
            return true;
        }
        branches.iter().for_each(|branch| self.explain::<M>(*branch, data, position.instance));
        self.fail::<M>(position, "anyOf", || (json!({}), "must match a schema in anyOf".to_owned()))
    }

    #[inline(never)]
    fn one_of<M: Mode>(
        &mut self,
        branches: &[Subschema],
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let before = self.error_count;
        let (mut first, mut second) = (None, None);
        for (index, branch) in branches.iter().enumerate() {
            if first.is_none() {
                first = self.branch::<M>(*branch, data, position).then_some(index);
            } else if self.untracked(|run| run.try_subschema::<M>(*branch, data, position.instance)) {
                second = Some(index);
                break;
            }
        }
        if first.is_some() && second.is_none() {
            self.discard_errors_since(before);
            return true;
        }
        // Ajv visits no branch after the second match.
        let visited = second.map_or(branches.len(), |second| second + 1);
        for branch in branches.iter().take(visited) {
            self.explain::<M>(*branch, data, position.instance);
        }
        self.fail::<M>(position, "oneOf", || {
            let passing = second.map_or(Value::Null, |second| json!([first, second]));
            (json!({ "passingSchemas": passing }), "must match exactly one schema in oneOf".to_owned())
        })
    }

    #[inline(never)]
    fn all_of<M: Mode>(&mut self, schemas: &[NodeId], data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        let mut is_valid = true;
        for schema in schemas {
            is_valid &= self.visit::<M>(*schema, M::reborrow(data), position.instance);
            if !is_valid && !M::COLLECTS {
                return false;
            }
        }
        is_valid
    }

    #[inline(never)]
    fn condition<M: Mode>(
        &mut self,
        condition: &Condition,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        if condition.then.is_none() && condition.otherwise.is_none() && self.evaluated.is_none() {
            return true;
        }
        let before = self.error_count;
        let is_match = self.branch::<M>(condition.test, data, position);
        self.discard_errors_since(before);
        let (clause, name) = if is_match { (condition.then, "then") } else { (condition.otherwise, "else") };
        let Some(clause) = clause else { return true };
        self.tracked_if_valid(|validation| {
            validation.visit::<M>(clause, M::reborrow(data), position.instance)
        }) || self.fail::<M>(position, "if", || {
            (json!({ "failingKeyword": name }), format!("must match \"{name}\" schema"))
        })
    }
}
