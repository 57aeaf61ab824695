//! Keywords for objects. One pass over the members finds and validates the properties; then defaults are filled in, so
//! that all other keywords see them.

use serde_json::{Map, Value, json};

use super::super::ValidationError;
use super::super::compiled_schema::{Dependencies, NO_SLOT, NodeId, ObjectRules, PRESENCE_BITS, Remainder};
use super::super::member_order::array_index;
use super::{CheckOnly, FillAndCollect, Instance, MAX_ERRORS, Mode, Validation};
use crate::keyword::Keyword;

/// Which properties of a schema an object has: found in one pass.
#[derive(Default)]
struct PresentProperties {
    /// The members do not have the order of the schema's properties.
    is_out_of_order: bool,
    /// There is a member that is no property of the schema.
    has_unknown: bool,
    /// A bit for each of the first properties.
    bits: u64,
    /// The slot after the last property found.
    next: usize,
}

impl PresentProperties {
    /// Adds the next member.
    #[inline]
    fn add(&mut self, slot: u16) {
        if slot == NO_SLOT {
            self.has_unknown = true;
            return;
        }
        self.is_out_of_order |= usize::from(slot) < self.next;
        self.next = usize::from(slot) + 1;
        self.mark(slot);
    }

    /// Marks a property as present.
    #[inline]
    fn mark(&mut self, slot: u16) {
        if slot < PRESENCE_BITS {
            self.bits |= 1 << slot;
        }
    }

    /// Whether the property is present; looks it up if it has no bit.
    #[inline]
    fn has(&self, slot: u16, name: &str, members: &Map<String, Value>) -> bool {
        if slot < PRESENCE_BITS { self.bits & (1 << slot) != 0 } else { members.contains_key(name) }
    }

    /// Whether only the properties themselves can make the object invalid.
    #[inline]
    fn satisfies_object_rules(&self, rules: &ObjectRules) -> bool {
        let has_required = self.bits & rules.required_bits == rules.required_bits;
        let is_open = matches!(rules.additional, None | Some(Remainder::Allowed));
        has_required && !rules.has_other_rules && (!self.has_unknown || is_open)
    }
}

impl<'c> Validation<'c> {
    #[inline(never)]
    pub(super) fn object<M: Mode>(
        &mut self,
        rules: &'c ObjectRules,
        instance: &mut Instance<'_, '_, M>,
    ) -> bool {
        let mut present = PresentProperties::default();
        let before = self.error_count;
        let mut is_valid = if rules.defers_properties {
            instance.data.as_object().into_iter().flat_map(Map::keys).for_each(|name| {
                present.add(rules.slot(name, present.next));
            });
            true
        } else {
            self.properties(rules, instance, &mut present)
        };
        fill_properties(rules, instance, &mut present);
        if !present.satisfies_object_rules(rules) {
            is_valid = M::and(is_valid, || self.object_rules(rules, instance, &present, before));
        }
        if rules.defers_properties {
            let present = &mut PresentProperties::default();
            is_valid = M::and(is_valid, || self.properties(rules, instance, present));
        }
        if !rules.patterns.is_empty() {
            is_valid = M::and(is_valid, || self.pattern_properties(rules, instance));
        }
        if let Some(dependent) = &rules.dependent {
            is_valid = M::and(is_valid, || self.dependencies(dependent, instance, "dependentRequired"));
        }
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.declared.push(rules);
            evaluated.all_properties |= rules.additional.is_some();
        }
        if let Some(remainder) = rules.unevaluated {
            let names = (Keyword::UnevaluatedProperties, "unevaluated");
            let covered = |validation: &Self, name: &str| {
                validation.evaluated.as_ref().is_some_and(|evaluated| evaluated.has_property(name))
            };
            is_valid = M::and(is_valid, || self.remaining_members(remainder, instance, names, covered));
            if let Some(evaluated) = &mut self.evaluated {
                evaluated.all_properties = true;
            }
        }
        is_valid
    }

    /// The keywords whose errors come before those of the properties, which have been visited already. `before` is the
    /// number of errors before the object.
    #[inline(never)]
    fn object_rules<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        instance: &mut Instance<'_, '_, M>,
        present: &PresentProperties,
        before: usize,
    ) -> bool {
        let later = self.errors.split_off(before.min(self.errors.len()));
        let later_count = std::mem::replace(&mut self.error_count, before) - before;
        let mut is_valid = self.presence(rules, instance, present);
        if let Some(schema) = rules.names {
            is_valid = M::and(is_valid, || self.property_names(schema, instance));
        }
        if let Some(remainder) = rules.additional.filter(|_| present.has_unknown) {
            let names = (Keyword::AdditionalProperties, "additional");
            let covered = |_: &Self, name: &str| {
                rules.slot(name, 0) != NO_SLOT
                    || rules.patterns.iter().any(|(pattern, _)| pattern.matches(name))
            };
            is_valid = M::and(is_valid, || self.remaining_members(remainder, instance, names, covered));
        }
        if let Some(dependencies) = &rules.dependencies {
            is_valid = M::and(is_valid, || self.dependencies(dependencies, instance, "dependencies"));
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
        instance: &Instance<'_, '_, M>,
        present: &PresentProperties,
    ) -> bool {
        let Some(members) = instance.data.as_object() else { return true };
        let max = (Keyword::MaxProperties, rules.max_properties.as_ref());
        let min = (Keyword::MinProperties, rules.min_properties.as_ref());
        let mut is_valid = self.count::<M>(members.len(), "properties", max, min, instance.position);
        for required in &rules.required {
            let name = &*required.name;
            if !present.has(required.slot, name, members) {
                is_valid = self.fail::<M>(instance.position, || {
                    let message = format!("must have required property '{name}'");
                    ("required", json!({ "missingProperty": name }), message)
                });
            }
        }
        is_valid
    }

    #[inline(never)]
    fn property_names<M: Mode>(&mut self, schema: NodeId, instance: &mut Instance<'_, '_, M>) -> bool {
        let position = instance.position;
        self.each_member(instance, |validation, name, _| {
            let mut value = Value::String(name.to_owned());
            let is_valid = if M::COLLECTS {
                validation.visit_child::<FillAndCollect>(schema, &mut value, position.location)
            } else {
                validation.visit_child::<CheckOnly>(schema, &value, position.location)
            };
            is_valid
                || validation.fail::<M>(position, || {
                    let message = "property name must be valid".to_owned();
                    ("propertyNames", json!({ "propertyName": name }), message)
                })
        })
    }

    /// Members that are not `covered` by other keywords. `adjective` is the start of the keyword.
    #[inline(never)]
    fn remaining_members<M: Mode>(
        &mut self,
        remainder: Remainder,
        instance: &mut Instance<'_, '_, M>,
        (keyword, adjective): (Keyword, &str),
        covered: impl Fn(&Self, &str) -> bool,
    ) -> bool {
        let position = instance.position;
        self.each_member(instance, |validation, name, value| {
            covered(validation, name)
                || match remainder {
                    Remainder::Allowed => true,
                    Remainder::Schema(schema) => {
                        validation.visit_child::<M>(schema, value, &position.location.key(name))
                    }
                    Remainder::Forbidden => validation.fail::<M>(position, || {
                        let params = json!({ format!("{adjective}Property"): name });
                        (keyword.name(), params, format!("must NOT have {adjective} properties"))
                    }),
                }
        })
    }

    /// Validates the members in their own order, which needs no lookup, and sorts the errors into the schema's order.
    fn properties<M: Mode>(
        &mut self,
        rules: &ObjectRules,
        instance: &mut Instance<'_, '_, M>,
        present: &mut PresentProperties,
    ) -> bool {
        let location = instance.position.location;
        let Some(members) = M::members(&mut instance.data) else { return true };
        let before = self.errors.len();
        // The slots of invalid properties, with the number of errors after each.
        let mut invalid: Vec<(u16, usize)> = Vec::new();
        for (name, value) in members {
            let slot = rules.slot(name, present.next);
            present.add(slot);
            let schema = rules.properties.get(usize::from(slot)).and_then(|property| property.schema);
            if let Some(schema) = schema
                && !self.visit_child::<M>(schema, value, &location.key(name))
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
        instance: &mut Instance<'_, '_, M>,
    ) -> bool {
        let location = instance.position.location;
        M::all(rules.patterns.iter(), |(pattern, schema)| {
            self.each_member(instance, |validation, name, value| {
                if !pattern.matches(name) {
                    return true;
                }
                if let Some(evaluated) = &mut validation.evaluated {
                    evaluated.names.push(name.to_owned());
                }
                schema.is_none_or(|schema| validation.visit_child::<M>(schema, value, &location.key(name)))
            })
        })
    }

    /// `dependencies`, or `dependentRequired` and `dependentSchemas`.
    #[inline(never)]
    fn dependencies<M: Mode>(
        &mut self,
        rules: &Dependencies,
        instance: &mut Instance<'_, '_, M>,
        keyword: &'static str,
    ) -> bool {
        let mut is_valid = true;
        for (property, required) in &rules.required {
            if instance.data.get(&**property).is_none() {
                continue;
            }
            for missing in required.iter().filter(|name| instance.data.get(&***name).is_none()) {
                is_valid = self.fail::<M>(instance.position, || {
                    let names = required.join(", ");
                    let noun = if required.len() == 1 { "property" } else { "properties" };
                    let message = format!("must have {noun} {names} when property {property} is present");
                    let params = json!({
                        "property": property,
                        "missingProperty": missing,
                        "depsCount": required.len(),
                        "deps": names,
                    });
                    (keyword, params, message)
                });
            }
        }
        for (property, schema) in &rules.schemas {
            if instance.data.get(&**property).is_some() {
                is_valid &= self.tracked_if_valid(|validation| validation.apply(*schema, instance));
            }
        }
        is_valid
    }

    /// Visits members in JavaScript's order: names that are array indices come first.
    fn each_member<M: Mode>(
        &mut self,
        instance: &mut Instance<'_, '_, M>,
        mut visit: impl for<'x> FnMut(&mut Self, &str, M::Ref<'x>) -> bool,
    ) -> bool {
        let mut names = instance.data.as_object().into_iter().flat_map(Map::keys);
        let is_reordered = M::COLLECTS && names.any(|name| array_index(name).is_some());
        let Some(members) = M::members(&mut instance.data) else { return true };
        if is_reordered {
            let mut members: Vec<_> = members.collect();
            members.sort_by_key(|(name, _)| array_index(name).unwrap_or(u32::MAX));
            return M::all(members.into_iter(), |(name, value)| visit(self, name, value));
        }
        M::all(members, |(name, value)| visit(self, name, value))
    }
}

fn fill_properties<M: Mode>(
    rules: &ObjectRules,
    instance: &mut Instance<'_, '_, M>,
    present: &mut PresentProperties,
) {
    if rules.defaults.is_empty() {
        return;
    }
    let Some(Value::Object(members)) = M::to_fill(&mut instance.data) else { return };
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
