//! Keywords for values of any type: references, `const`, `enum` and the logical applicators.

use serde_json::{Value, json};

use super::super::compiled_schema::{Condition, NodeId, Rule, Subschema};
use super::{CheckOnly, Instance, Mode, Validation};

impl<'c> Validation<'c> {
    pub(super) fn any_rule<M: Mode>(&mut self, rule: &'c Rule, instance: &mut Instance<'_, '_, M>) -> bool {
        match rule {
            Rule::Reference(target) => self.apply(*target, instance),
            Rule::DynamicReference(fixed, table) => {
                self.apply(self.dynamic_target(*table).unwrap_or(*fixed), instance)
            }
            Rule::Const(allowed) => {
                rule.equals(&instance.data)
                    || self.fail::<M>(instance.position, || {
                        ("const", json!({ "allowedValue": allowed }), "must be equal to constant".to_owned())
                    })
            }
            Rule::Enum(allowed) => {
                rule.equals(&instance.data)
                    || self.fail::<M>(instance.position, || {
                        let message = "must be equal to one of the allowed values".to_owned();
                        ("enum", json!({ "allowedValues": allowed }), message)
                    })
            }
            Rule::Not(schema) => self.not(*schema, instance),
            Rule::AnyOf(branches) => self.any_of(branches, instance),
            Rule::OneOf(branches) => self.one_of(branches, instance),
            Rule::AllOf(schemas) => M::all(schemas.iter(), |schema| self.apply(*schema, instance)),
            Rule::If(condition) => self.condition(condition, instance),
        }
    }

    /// The target in the outermost resource of the dynamic scope that has the anchor.
    fn dynamic_target(&self, table: usize) -> Option<NodeId> {
        let targets = self.schema.dynamic_targets.get(table)?;
        let in_resource = |resource: &u32| targets.iter().find(|(other, _)| other == resource);
        self.dynamic_scope.iter().find_map(in_resource).map(|(_, target)| *target)
    }

    /// Whether branches can be tried without collecting their errors. A called schema may fill in defaults in a branch;
    /// then branches run in full and their errors are discarded.
    const fn can_try<M: Mode>(&self) -> bool {
        !M::COLLECTS || !self.schema.fills_in_branches
    }

    /// Decides one branch. If the branch could not merely be tried, the caller discards the errors that do not count.
    pub(super) fn try_subschema<M: Mode>(
        &mut self,
        schema: Subschema,
        instance: &mut Instance<'_, '_, M>,
    ) -> bool {
        let Some(schema) = schema else { return true };
        if self.can_try::<M>() {
            return self.visit::<CheckOnly>(schema, &instance.data, instance.position.location);
        }
        self.apply(schema, instance)
    }

    /// Collects the errors of a branch that was only tried before. (A branch that ran in full is not run again: that
    /// would double the work at each level of a nested value.)
    pub(super) fn explain<M: Mode>(&mut self, schema: Subschema, instance: &mut Instance<'_, '_, M>) {
        if let Some(schema) = schema.filter(|_| M::COLLECTS && self.can_try::<M>()) {
            self.without_tracking(|validation| validation.apply(schema, instance));
        }
    }

    /// Tries a branch; what it evaluates counts if the instance is valid.
    fn branch<M: Mode>(&mut self, schema: Subschema, instance: &mut Instance<'_, '_, M>) -> bool {
        self.tracked_if_valid(|validation| validation.try_subschema(schema, instance))
    }

    #[inline(never)]
    fn not<M: Mode>(&mut self, schema: Subschema, instance: &mut Instance<'_, '_, M>) -> bool {
        let before = self.error_count;
        let is_match = self.without_tracking(|validation| validation.try_subschema(schema, instance));
        self.discard_errors_since(before);
        !is_match || self.fail::<M>(instance.position, || ("not", json!({}), "must NOT be valid".to_owned()))
    }

    #[inline(never)]
    fn any_of<M: Mode>(&mut self, branches: &[Subschema], instance: &mut Instance<'_, '_, M>) -> bool {
        let before = self.error_count;
        let mut is_valid = false;
        for branch in branches {
            is_valid |= self.branch(*branch, instance);
            // Otherwise later branches still count for what is evaluated and filled in.
            if is_valid && self.evaluated.is_none() && self.can_try::<M>() {
                return true;
            }
        }
        if is_valid {
            self.discard_errors_since(before);
            return true;
        }
        branches.iter().for_each(|branch| self.explain(*branch, instance));
        let message = || ("anyOf", json!({}), "must match a schema in anyOf".to_owned());
        self.fail::<M>(instance.position, message)
    }

    #[inline(never)]
    fn one_of<M: Mode>(&mut self, branches: &[Subschema], instance: &mut Instance<'_, '_, M>) -> bool {
        let before = self.error_count;
        let (mut first, mut second) = (None, None);
        for (index, branch) in branches.iter().enumerate() {
            if first.is_none() {
                first = self.branch(*branch, instance).then_some(index);
            } else if self.without_tracking(|validation| validation.try_subschema(*branch, instance)) {
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
        branches.iter().take(visited).for_each(|branch| self.explain(*branch, instance));
        self.fail::<M>(instance.position, || {
            let passing = second.map_or(Value::Null, |second| json!([first, second]));
            let message = "must match exactly one schema in oneOf".to_owned();
            ("oneOf", json!({ "passingSchemas": passing }), message)
        })
    }

    #[inline(never)]
    fn condition<M: Mode>(&mut self, condition: &Condition, instance: &mut Instance<'_, '_, M>) -> bool {
        if condition.then.is_none() && condition.otherwise.is_none() && self.evaluated.is_none() {
            return true;
        }
        let before = self.error_count;
        let is_match = self.branch(condition.test, instance);
        self.discard_errors_since(before);
        let (clause, name) = if is_match { (condition.then, "then") } else { (condition.otherwise, "else") };
        let Some(clause) = clause else { return true };
        self.tracked_if_valid(|validation| validation.apply(clause, instance))
            || self.fail::<M>(instance.position, || {
                ("if", json!({ "failingKeyword": name }), format!("must match \"{name}\" schema"))
            })
    }
}
