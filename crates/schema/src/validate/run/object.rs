//! Keywords for objects. One pass over the members finds and visits the properties; then defaults are filled in, so
//! that all other keywords see them.

use serde_json::{Map, Number, Value, json};

use super::scalar::counted;
use super::slots::{Slots, array_index};
use super::{MOST_ERRORS, Mode, ObjectRules, Run, Seen};
use crate::validate::error::Error;
use crate::validate::node::{NO_SLOT, OfObject, Sub, Sub2};
use crate::validate::number;
use crate::validate::path::At;

impl<'c> Run<'c> {
    #[inline(never)]
    pub(super) fn object<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let rules = here.rules;
        let mut slots = Slots::default();
        let before = self.count;
        let mut valid = if rules.properties_wait {
            members_of(M::get(data)).into_iter().flat_map(Map::keys).for_each(|name| {
                slots.add(rules.slot(name, slots.next));
            });
            true
        } else {
            self.properties::<M>(here, data, &mut slots)
        };
        fill::<M>(rules, data, &mut slots);
        if (valid || M::COLLECTS) && !slots.is_plain(rules) {
            valid &= self.before_properties::<M>(here, data, &slots, seen.as_deref_mut(), before);
        }
        if (valid || M::COLLECTS) && rules.properties_wait {
            valid &= self.properties::<M>(here, data, &mut Slots::default());
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

    /// The keywords whose errors stand before those of the properties, though these have been visited: most objects
    /// have nothing to look at here. `before` counts the errors that were there before the object.
    #[inline(never)]
    fn before_properties<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        slots: &Slots,
        seen: Option<&mut Seen<'c>>,
        before: usize,
    ) -> bool {
        let rules = here.rules;
        let later = self.errors.split_off(before.min(self.errors.len()));
        let later_count = std::mem::replace(&mut self.count, before) - before;
        let mut valid = self.presence::<M>(here, data, slots);
        if (valid || M::COLLECTS) && rules.names.is_some() {
            valid &= self.names::<M>(here, data);
        }
        if (valid || M::COLLECTS)
            && let Some(additional) = rules.additional
            && slots.has_unknown
        {
            valid &= self.additional::<M>(here, additional, data);
        }
        if (valid || M::COLLECTS)
            && let Some(dependencies) = &rules.dependencies
        {
            valid &= self.dependencies::<M>(here, dependencies, data, seen, "dependencies");
        }
        self.count += later_count;
        self.errors.extend(later);
        self.errors.truncate(MOST_ERRORS);
        valid
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
            if !members.is_some_and(|members| slots.has(required.slot, name, members)) {
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
        self.each::<M>(data, |run, name, _| {
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
    ) -> bool {
        if schema == Sub2::Always {
            return true;
        }
        self.each::<M>(data, |run, name, value| {
            let known = here.rules.slot(name, 0) != NO_SLOT
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
        slots: &mut Slots,
    ) -> bool {
        let rules = here.rules;
        let Some(members) = M::members(data) else { return true };
        let before = self.errors.len();
        let mut parts: Vec<(u16, usize)> = Vec::new();
        let mut valid = true;
        for (name, value) in members {
            let slot = rules.slot(name, slots.next);
            slots.add(slot);
            let schema = rules.properties.get(usize::from(slot)).map(|property| property.schema);
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
        if !valid && slots.out_of_order {
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
            valid &= self.each::<M>(data, |run, name, value| {
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
        let valid = self.each::<M>(data, |run, name, value| match schema {
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
        mut visit: impl for<'x> FnMut(&mut Self, &str, M::Ref<'x>) -> bool,
    ) -> bool {
        let mut valid = true;
        let names = members_of(M::get(data)).into_iter().flat_map(Map::keys);
        if M::COLLECTS && names.clone().any(|name| array_index(name).is_some()) {
            let mut order: Vec<String> = names.cloned().collect();
            order.sort_by_key(|name| array_index(name).unwrap_or(u32::MAX));
            for name in order {
                if let Some(value) = M::member(data, &name) {
                    valid &= visit(self, &name, value);
                }
            }
            return valid;
        }
        for (name, value) in M::members(data).into_iter().flatten() {
            valid &= visit(self, name, value);
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
            && !slots.has(filling.slot, &property.name, members)
        {
            // Not `to_string`, which formats what is boxed.
            members.insert((*property.name).to_owned(), filling.value.clone());
            slots.mark(filling.slot);
        }
    }
}
