//! Keywords for objects. One pass over the members finds and validates the properties; then defaults are filled in, so
//! that all other keywords see them.

use serde_json::{Map, Value, json};

use super::super::compiled_schema::{NO_SLOT, ObjectRules, Remainder, Subschema};
use super::super::error::ValidationError;
use super::present_properties::PresentProperties;
use super::{MAX_ERRORS, Mode, Position, Validation};
use crate::keyword::Keyword;
use crate::validate::member_order::array_index;

impl<'c> Validation<'c> {
    #[inline(never)]
    pub(super) fn object<M: Mode>(
        &mut self,
        rules: &'c ObjectRules,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let mut present = PresentProperties::default();
        let before = self.error_count;
        let mut is_valid = if rules.defers_properties {
            data.as_object().into_iter().flat_map(Map::keys).for_each(|name| {
                present.add(rules.slot(name, present.next));
            });
            true
        } else {
            self.properties::<M>(rules, data, &mut present, position)
        };
        fill_properties::<M>(rules, data, &mut present);
        if (is_valid || M::COLLECTS) && !present.satisfies_object_rules(rules) {
            is_valid &= self.object_rules::<M>(rules, data, &present, before, position);
        }
        if (is_valid || M::COLLECTS) && rules.defers_properties {
            is_valid &= self.properties::<M>(rules, data, &mut PresentProperties::default(), position);
        }
        if (is_valid || M::COLLECTS) && !rules.patterns.is_empty() {
            is_valid &= self.pattern_properties::<M>(rules, data, position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(dependent) = &rules.dependent
        {
            is_valid &= self.dependencies::<M>(dependent, data, position, "dependentRequired");
        }
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.declared.push(rules);
            evaluated.all_properties |= rules.additional.is_some();
        }
        if (is_valid || M::COLLECTS)
            && let Some(remainder) = rules.unevaluated
        {
            is_valid &= self.unevaluated_properties::<M>(remainder, data, position);
        }
        is_valid
    }

    /// The keywords whose errors come before those of the properties, which have been visited already. `before` is the
    /// number of errors before the object.
    #[inline(never)]
    fn object_rules<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        data: &mut M::Ref<'_>,
        present: &PresentProperties,
        before: usize,
        position: Position<'_>,
    ) -> bool {
        let later = self.errors.split_off(before.min(self.errors.len()));
        let later_count = std::mem::replace(&mut self.error_count, before) - before;
        let mut is_valid = self.presence::<M>(rules, data, present, position);
        if (is_valid || M::COLLECTS) && rules.names.is_some() {
            is_valid &= self.property_names::<M>(rules, data, position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(remainder) = rules.additional
            && present.has_unknown
        {
            is_valid &= self.additional_properties::<M>(rules, remainder, data, position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(dependencies) = &rules.dependencies
        {
            is_valid &= self.dependencies::<M>(dependencies, data, position, "dependencies");
        }
        self.error_count += later_count;
        self.errors.extend(later);
        self.errors.truncate(MAX_ERRORS);
        is_valid
    }

    /// `maxProperties`, `minProperties` and `required`.
    fn presence<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        data: &Value,
        present: &PresentProperties,
        position: Position<'_>,
    ) -> bool {
        let Some(members) = data.as_object() else { return true };
        let max = (Keyword::MaxProperties, rules.max_properties.as_ref());
        let min = (Keyword::MinProperties, rules.min_properties.as_ref());
        let mut is_valid = self.count::<M>(members.len(), "properties", max, min, position);
        for required in &rules.required {
            let name = &*required.name;
            if !present.has(required.slot, name, members) {
                is_valid = self.fail::<M>(position, "required", || {
                    (json!({ "missingProperty": name }), format!("must have required property '{name}'"))
                });
            }
        }
        is_valid
    }

    #[inline(never)]
    fn property_names<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let Some(schema) = rules.names else { return true };
        self.each_member::<M>(data, |validation, name, _| {
            M::with_temporary(Value::String(name.to_owned()), |name| {
                validation.visit_child::<M>(schema, name, position.instance)
            }) || validation.fail::<M>(position, "propertyNames", || {
                (json!({ "propertyName": name }), "property name must be valid".to_owned())
            })
        })
    }

    #[inline(never)]
    fn additional_properties<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        remainder: Remainder,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        if remainder == Remainder::Allowed {
            return true;
        }
        self.each_member::<M>(data, |validation, name, value| {
            let is_known = rules.slot(name, 0) != NO_SLOT
                || rules.patterns.iter().any(|(pattern, _)| pattern.matches(name));
            is_known
                || validation.remaining_member::<M>(remainder, name, value, position, || {
                    let message = "must NOT have additional properties";
                    ("additionalProperties", json!({ "additionalProperty": name }), message)
                })
        })
    }

    /// A member that no other keyword covers.
    fn remaining_member<M: Mode>(
        &mut self,
        remainder: Remainder,
        name: &str,
        value: M::Ref<'_>,
        position: Position<'_>,
        error: impl FnOnce() -> (&'static str, Value, &'static str),
    ) -> bool {
        match remainder {
            Remainder::Allowed => true,
            Remainder::Schema(schema) => self.visit_child::<M>(schema, value, &position.instance.key(name)),
            Remainder::Forbidden => {
                let (keyword, params, message) = error();
                self.fail::<M>(position, keyword, || (params, message.to_owned()))
            }
        }
    }

    /// Validates the members in their own order, which needs no lookup, and sorts the errors into the schema's order.
    fn properties<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        data: &mut M::Ref<'_>,
        present: &mut PresentProperties,
        position: Position<'_>,
    ) -> bool {
        let Some(members) = M::members(data) else { return true };
        let before = self.errors.len();
        // The slots of invalid properties, with the number of errors after each.
        let mut invalid: Vec<(u16, usize)> = Vec::new();
        for (name, value) in members {
            let slot = rules.slot(name, present.next);
            present.add(slot);
            let schema = rules.properties.get(usize::from(slot)).map(|property| property.schema);
            if let Some(Subschema::Node(schema)) = schema
                && !self.visit_child::<M>(schema, value, &position.instance.key(name))
            {
                if !M::COLLECTS {
                    return false;
                }
                invalid.push((slot, self.errors.len()));
            }
        }
        let is_valid = invalid.is_empty();
        if !is_valid && present.is_out_of_order {
            self.sort_errors(before, invalid);
        }
        is_valid
    }

    /// Sorts the errors since `before` by slot. Each entry of `ends` says where the errors of a slot end.
    #[cold]
    fn sort_errors(&mut self, before: usize, ends: Vec<(u16, usize)>) {
        let mut errors = self.errors.split_off(before).into_iter();
        let mut start = before;
        let mut groups: Vec<(u16, Vec<ValidationError>)> = Vec::with_capacity(ends.len());
        for (slot, end) in ends {
            groups.push((slot, errors.by_ref().take(end - start).collect()));
            start = end;
        }
        groups.sort_by_key(|(slot, _)| *slot);
        self.errors.extend(groups.into_iter().flat_map(|(_, errors)| errors));
    }

    #[inline(never)]
    fn pattern_properties<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let mut is_valid = true;
        for (pattern, schema) in &rules.patterns {
            is_valid &= self.each_member::<M>(data, |validation, name, value| {
                if !pattern.matches(name) {
                    return true;
                }
                if let Some(evaluated) = &mut validation.evaluated {
                    evaluated.names.push(name.to_owned());
                }
                match schema {
                    Subschema::Always => true,
                    Subschema::Node(schema) => {
                        validation.visit_child::<M>(*schema, value, &position.instance.key(name))
                    }
                }
            });
            if !is_valid && !M::COLLECTS {
                return false;
            }
        }
        is_valid
    }

    #[inline(never)]
    fn unevaluated_properties<M: Mode>(
        &mut self,
        remainder: Remainder,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let is_valid = self.each_member::<M>(data, |validation, name, value| {
            validation.evaluated.as_ref().is_some_and(|evaluated| evaluated.has_property(name))
                || validation.remaining_member::<M>(remainder, name, value, position, || {
                    let message = "must NOT have unevaluated properties";
                    ("unevaluatedProperties", json!({ "unevaluatedProperty": name }), message)
                })
        });
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.all_properties = true;
        }
        is_valid
    }

    /// Visits members in JavaScript's order: names that are array indices come first.
    fn each_member<M: Mode>(
        &mut self,
        data: &mut M::Ref<'_>,
        mut visit: impl for<'x> FnMut(&mut Self, &str, M::Ref<'x>) -> bool,
    ) -> bool {
        let mut is_valid = true;
        let names = data.as_object().into_iter().flat_map(Map::keys);
        if M::COLLECTS && names.clone().any(|name| array_index(name).is_some()) {
            let mut order: Vec<String> = names.cloned().collect();
            order.sort_by_key(|name| array_index(name).unwrap_or(u32::MAX));
            for name in order {
                if let Some(value) = M::member(data, &name) {
                    is_valid &= visit(self, &name, value);
                }
            }
            return is_valid;
        }
        for (name, value) in M::members(data).into_iter().flatten() {
            is_valid &= visit(self, name, value);
            if !is_valid && !M::COLLECTS {
                return false;
            }
        }
        is_valid
    }
}

fn fill_properties<M: Mode>(rules: &ObjectRules, data: &mut M::Ref<'_>, present: &mut PresentProperties) {
    if rules.defaults.is_empty() {
        return;
    }
    let Some(members) = M::object_to_fill(data) else { return };
    for default in &rules.defaults {
        if let Some(property) = rules.properties.get(usize::from(default.slot))
            && !present.has(default.slot, &property.name, members)
        {
            // `to_owned` of the str: `to_string` of the box goes through the formatter.
            members.insert((*property.name).to_owned(), default.value.clone());
            present.mark(default.slot);
        }
    }
}
