//! Keywords for objects. Defaults are filled in first, so all of these see them.

use serde_json::{Map, Number, Value, json};

use super::scalar::counted;
use super::slots::{NONE, Slots, array_index};
use super::{Mode, ObjectRules, Run, Seen};
use crate::schema::validate::error::Error;
use crate::schema::validate::node::{OfObject, Sub, Sub2};
use crate::schema::validate::number;
use crate::schema::validate::path::At;

impl<'c> Run<'c> {
    #[inline(never)]
    pub(super) fn object<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let rules = here.rules;
        let Some(members) = M::get(data).as_object() else { return true };
        let mut slots = Slots::of(rules, members);
        fill::<M>(rules, data, &mut slots);
        let mut valid = self.presence::<M>(here, data, &slots);
        if (valid || M::COLLECTS) && rules.names.is_some() {
            valid &= self.names::<M>(here, data);
        }
        if (valid || M::COLLECTS)
            && let Some(additional) = rules.additional
            && slots.has_unknown
        {
            valid &= self.additional::<M>(here, additional, data, &slots);
        }
        if (valid || M::COLLECTS)
            && let Some(dependencies) = &rules.dependencies
        {
            valid &= self.dependencies::<M>(here, dependencies, data, seen.as_deref_mut(), "dependencies");
        }
        if valid || M::COLLECTS {
            valid &= self.properties::<M>(here, data, &slots);
        }
        if (valid || M::COLLECTS) && !rules.patterns.is_empty() {
            valid &= self.patterns::<M>(here, data, seen.as_deref_mut());
        }
        if (valid || M::COLLECTS)
            && let Some(dependent) = &rules.dependent
        {
            valid &= self.dependencies::<M>(here, dependent, data, seen.as_deref_mut(), "dependentRequired");
        }
        match seen {
            Some(seen) => self.evaluated::<M>(here, data, seen, valid),
            None => valid,
        }
    }

    /// Adds up what has been evaluated and checks the rest.
    fn evaluated<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        seen: &mut Seen<'c>,
        valid: bool,
    ) -> bool {
        seen.declared(here.rules);
        seen.all_properties |= here.rules.additional.is_some();
        match here.rules.unevaluated {
            Some(rest) if valid || M::COLLECTS => {
                self.unevaluated_properties::<M>(here, rest, data, seen) && valid
            }
            _ => valid,
        }
    }

    fn presence<M: Mode>(&mut self, here: ObjectRules<'_, 'c>, data: &M::Ref<'_>, slots: &Slots) -> bool {
        let members = members_of(M::get(data));
        let wrong = |run: &mut Self, keyword: &'static str, limit: &Number| {
            let detail = || counted(keyword, "maxProperties", limit, "properties");
            run.fail::<M>(here.id, here.at, keyword, detail)
        };
        let count = members.map_or(0, Map::len);
        let mut valid = true;
        if let Some(limit) = here.rules.max_properties.as_ref().filter(|limit| count > number::floor(limit)) {
            valid = wrong(self, "maxProperties", limit);
        }
        if let Some(limit) = here.rules.min_properties.as_ref().filter(|limit| count < number::ceiling(limit))
        {
            valid = wrong(self, "minProperties", limit);
        }
        for required in &here.rules.required {
            let name = &*required.name;
            let present = match required.slot {
                Some(slot) => slots.has(slot),
                None => members.is_some_and(|members| members.contains_key(name)),
            };
            if !present {
                valid = self.fail::<M>(here.id, here.at, "required", || {
                    (json!({ "missingProperty": name }), format!("must have required property '{name}'"))
                });
            }
        }
        valid
    }

    #[inline(never)]
    fn names<M: Mode>(&mut self, here: ObjectRules<'_, 'c>, data: &mut M::Ref<'_>) -> bool {
        let Some(schema) = here.rules.names else { return true };
        self.each::<M>(data, |run, _, name, _| {
            M::with(Value::String(name.to_owned()), |key| run.node::<M>(schema, key, here.at, None))
                || run.fail::<M>(here.id, here.at, "propertyNames", || {
                    (json!({ "propertyName": name }), "property name must be valid".to_owned())
                })
        })
    }

    #[inline(never)]
    fn additional<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        schema: Sub2,
        data: &mut M::Ref<'_>,
        slots: &Slots,
    ) -> bool {
        if schema == Sub2::Always {
            return true;
        }
        self.each::<M>(data, |run, index, name, value| {
            let known = slots.get(index) != NONE
                || here.rules.patterns.iter().any(|(pattern, _)| pattern.matches(name));
            match schema {
                _ if known => true,
                Sub2::Always => true,
                Sub2::Node(schema) => run.node::<M>(schema, value, &At::Key(here.at, name), None),
                Sub2::Never => run.fail::<M>(here.id, here.at, "additionalProperties", || {
                    let message = "must NOT have additional properties".to_owned();
                    (json!({ "additionalProperty": name }), message)
                }),
            }
        })
    }

    /// Visits the members as they come, which needs no look-up, and puts the errors into the order of the schema.
    fn properties<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        slots: &Slots,
    ) -> bool {
        let properties = &here.rules.properties;
        let mut valid = true;
        let before = self.errors.len();
        let mut parts: Vec<(u16, usize)> = Vec::new();
        for (index, (name, value)) in M::members(data).enumerate() {
            let slot = slots.get(index);
            let schema = properties.get(usize::from(slot)).map(|property| property.schema);
            if let Some(Sub::Node(schema)) = schema
                && !self.node::<M>(schema, value, &At::Key(here.at, name), None)
            {
                valid = false;
                if !M::COLLECTS {
                    return false;
                }
                parts.push((slot, self.errors.len()));
            }
        }
        if !slots.in_order && parts.len() > 1 {
            self.sort_errors(before, parts);
        }
        valid
    }

    /// Sorts the errors since `before`, of which each part belongs to a property and ends where it says.
    #[cold]
    fn sort_errors(&mut self, before: usize, mut parts: Vec<(u16, usize)>) {
        let mut found = self.errors.split_off(before).into_iter();
        let mut start = before;
        let mut groups: Vec<(u16, Vec<Error>)> = Vec::with_capacity(parts.len());
        for (slot, end) in parts.drain(..) {
            groups.push((slot, found.by_ref().take(end - start).collect()));
            start = end;
        }
        groups.sort_by_key(|(slot, _)| *slot);
        self.errors.extend(groups.into_iter().flat_map(|(_, errors)| errors));
    }

    #[inline(never)]
    fn patterns<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let mut valid = true;
        for (pattern, schema) in &here.rules.patterns {
            valid &= self.each::<M>(data, |run, _, name, value| {
                if !pattern.matches(name) {
                    return true;
                }
                if let Some(seen) = seen.as_deref_mut() {
                    seen.name(name);
                }
                match schema {
                    Sub::Always => true,
                    Sub::Node(schema) => run.node::<M>(*schema, value, &At::Key(here.at, name), None),
                }
            });
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    #[inline(never)]
    fn unevaluated_properties<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        schema: Sub2,
        data: &mut M::Ref<'_>,
        seen: &mut Seen<'c>,
    ) -> bool {
        let valid = self.each::<M>(data, |run, _, name, value| match schema {
            _ if seen.has(name) => true,
            Sub2::Always => true,
            Sub2::Node(schema) => run.node::<M>(schema, value, &At::Key(here.at, name), None),
            Sub2::Never => run.fail::<M>(here.id, here.at, "unevaluatedProperties", || {
                (json!({ "unevaluatedProperty": name }), "must NOT have unevaluated properties".to_owned())
            }),
        });
        seen.all_properties = true;
        valid
    }

    /// Visits members in JavaScript's order, in which names that are indices come first.
    fn each<M: Mode>(
        &mut self,
        data: &mut M::Ref<'_>,
        mut visit: impl for<'x> FnMut(&mut Self, usize, &str, M::Ref<'x>) -> bool,
    ) -> bool {
        let mut valid = true;
        let names = members_of(M::get(data)).into_iter().flat_map(Map::keys);
        if M::COLLECTS && names.clone().any(|name| array_index(name).is_some()) {
            let mut order: Vec<(usize, String)> = names.cloned().enumerate().collect();
            order.sort_by_key(|(_, name)| array_index(name).unwrap_or(u32::MAX));
            for (index, name) in order {
                if let Some(value) = M::member(data, &name) {
                    valid &= visit(self, index, &name, value);
                }
            }
            return valid;
        }
        for (index, (name, value)) in M::members(data).enumerate() {
            valid &= visit(self, index, name, value);
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }
}

pub(super) fn members_of(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object()
}

fn fill<M: Mode>(rules: &OfObject, data: &mut M::Ref<'_>, slots: &mut Slots) {
    if rules.defaults.is_empty() {
        return;
    }
    let Some(members) = M::object_to_fill(data) else { return };
    for filling in &rules.defaults {
        if let Some(property) = rules.properties.get(usize::from(filling.slot))
            && !slots.has(filling.slot)
        {
            // Not `to_string`, which formats what is boxed.
            members.insert((*property.name).to_owned(), filling.value.clone());
            if filling.holds {
                slots.add_sound(filling.slot);
            } else {
                slots.add(filling.slot);
            }
        }
    }
}
