//! Keywords for values of any type.

use serde_json::{Value, json};

use super::{Mode, Read, Run, Seen};
use crate::validate::node::{Condition, Id, Rule, Sub};
use crate::validate::path::At;

impl<'c> Run<'c> {
    pub(super) fn any_rule<M: Mode>(
        &mut self,
        id: Id,
        rule: &'c Rule,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        match rule {
            Rule::Inline(target) | Rule::Call(target) => self.node::<M>(*target, M::again(data), at, seen),
            Rule::Dynamic(fixed, table) => {
                let targets = self.arena.dynamic.get(*table).map(Vec::as_slice).unwrap_or_default();
                let known = |resource: &u32| targets.iter().find(|(other, _)| other == resource);
                let target = self.scope.iter().find_map(known).map_or(*fixed, |(_, target)| *target);
                self.node::<M>(target, M::again(data), at, seen)
            }
            Rule::Const(wanted) => {
                rule.takes(M::get(data))
                    || self.fail::<M>(id, at, "const", || {
                        (json!({ "allowedValue": wanted }), "must be equal to constant".to_owned())
                    })
            }
            Rule::Enum(values) => {
                rule.takes(M::get(data))
                    || self.not_allowed::<M>(id, at, || json!({ "allowedValues": values }))
            }
            Rule::Words(words) => {
                rule.takes(M::get(data))
                    || self.not_allowed::<M>(id, at, || json!({ "allowedValues": words }))
            }
            Rule::Not(schema) => self.not::<M>(id, *schema, data, at),
            Rule::AnyOf(branches) => self.any_of::<M>(id, branches, data, at, seen),
            Rule::OneOf(branches) => self.one_of::<M>(id, branches, data, at, seen),
            Rule::AllOf(schemas) => self.all_of::<M>(schemas, data, at, seen),
            Rule::If(condition) => self.condition::<M>(id, condition, data, at, seen),
        }
    }

    fn not_allowed<M: Mode>(&mut self, id: Id, at: &At<'_>, params: impl FnOnce() -> Value) -> bool {
        self.fail::<M>(id, at, "enum", || (params(), "must be equal to one of the allowed values".to_owned()))
    }

    /// Whether branches can be tried without a trace. Only a called schema fills in defaults there;
    /// where one can, branches run in full and their errors are taken back.
    const fn can_try<M: Mode>(&self) -> bool {
        !M::COLLECTS || !self.arena.fills_in_branches
    }

    fn sub<M: Mode>(
        &mut self,
        schema: Sub,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        match schema {
            Sub::Always => true,
            Sub::Node(id) => self.node::<M>(id, M::again(data), at, seen),
        }
    }

    /// Decides one branch. Errors it leaves behind, where it could not merely be tried, are taken
    /// back by the caller if they turn out not to count.
    pub(super) fn tries<M: Mode>(
        &mut self,
        schema: Sub,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        if self.can_try::<M>() {
            return self.sub::<Read>(schema, &mut M::get(data), at, seen);
        }
        self.sub::<M>(schema, data, at, seen)
    }

    /// Runs a branch whose errors count, if it was only tried before. (Running a branch twice in full
    /// would double the work at each level of a nested value.)
    pub(super) fn explain<M: Mode>(&mut self, schema: Sub, data: &mut M::Ref<'_>, at: &At<'_>) {
        if M::COLLECTS && self.can_try::<M>() {
            self.sub::<M>(schema, data, at, None);
        }
    }

    #[inline(never)]
    fn not<M: Mode>(&mut self, id: Id, schema: Sub, data: &mut M::Ref<'_>, at: &At<'_>) -> bool {
        let before = self.count;
        let holds = self.tries::<M>(schema, data, at, None);
        self.reset(before);
        !holds || self.fail::<M>(id, at, "not", || (json!({}), "must NOT be valid".to_owned()))
    }

    #[inline(never)]
    fn any_of<M: Mode>(
        &mut self,
        id: Id,
        branches: &[Sub],
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let before = self.count;
        let mut valid = false;
        for branch in branches {
            valid |= self.branch::<M>(*branch, data, at, seen.as_deref_mut());
            // Later branches still count for what is evaluated and filled in.
            if valid && seen.is_none() && self.can_try::<M>() {
                return true;
            }
        }
        if valid {
            self.reset(before);
            return true;
        }
        branches.iter().for_each(|branch| self.explain::<M>(*branch, data, at));
        self.fail::<M>(id, at, "anyOf", || (json!({}), "must match a schema in anyOf".to_owned()))
    }

    /// Tries a branch; what it evaluates counts if it holds.
    fn branch<M: Mode>(
        &mut self,
        schema: Sub,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let Some(seen) = seen else { return self.tries::<M>(schema, data, at, None) };
        let mut own = Seen::default();
        let valid = self.tries::<M>(schema, data, at, Some(&mut own));
        if valid {
            seen.merge(own);
        }
        valid
    }

    #[inline(never)]
    fn one_of<M: Mode>(
        &mut self,
        id: Id,
        branches: &[Sub],
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let before = self.count;
        let mut passing = None;
        let mut second = None;
        for (index, branch) in branches.iter().enumerate() {
            // What the second evaluates does not count: the keyword has failed by then.
            let seen = seen.as_deref_mut().filter(|_| passing.is_none());
            if self.branch::<M>(*branch, data, at, seen) {
                if passing.is_some() {
                    second = Some(index);
                    break;
                }
                passing = Some(index);
            }
        }
        if passing.is_some() && second.is_none() {
            self.reset(before);
            return true;
        }
        // Ajv looks at no branch after the second that holds.
        let looked_at = second.map_or(branches.len(), |second| second + 1);
        branches.iter().take(looked_at).for_each(|branch| self.explain::<M>(*branch, data, at));
        self.fail::<M>(id, at, "oneOf", || {
            let passing = second.map_or(Value::Null, |second| json!([passing, second]));
            (json!({ "passingSchemas": passing }), "must match exactly one schema in oneOf".to_owned())
        })
    }

    #[inline(never)]
    fn all_of<M: Mode>(
        &mut self,
        schemas: &[Id],
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let mut valid = true;
        for schema in schemas {
            valid &= self.node::<M>(*schema, M::again(data), at, seen.as_deref_mut());
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    #[inline(never)]
    fn condition<M: Mode>(
        &mut self,
        id: Id,
        condition: &Condition,
        data: &mut M::Ref<'_>,
        at: &At<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        if condition.then.is_none() && condition.otherwise.is_none() && seen.is_none() {
            return true;
        }
        let before = self.count;
        let holds = self.branch::<M>(condition.test, data, at, seen.as_deref_mut());
        self.reset(before);
        let (clause, name) = if holds { (condition.then, "then") } else { (condition.otherwise, "else") };
        let Some(clause) = clause else { return true };
        let mut own = seen.is_some().then(Seen::default);
        let valid = self.node::<M>(clause, M::again(data), at, own.as_mut());
        if let (true, Some(seen), Some(own)) = (valid, seen, own) {
            seen.merge(own);
        }
        valid
            || self.fail::<M>(id, at, "if", || {
                (json!({ "failingKeyword": name }), format!("must match \"{name}\" schema"))
            })
    }
}
