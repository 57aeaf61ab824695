//! Keywords for arrays.

use serde_json::{Value, json};

use super::super::compiled_schema::{ArrayRules, Contains, ItemsRule, NodeId, Remainder, UniqueItems};
use super::super::equality::find_duplicate;
use super::{Instance, Mode, Position, Validation, Violation};
use crate::keyword::Keyword;
use crate::number::{ceiling, floor, js_text};

impl Validation<'_> {
    #[inline(never)]
    pub(super) fn array<M: Mode>(&mut self, rules: &ArrayRules, instance: &mut Instance<'_, '_, M>) -> bool {
        fill_items(rules, instance);
        let length = items_of(&instance.data).len();
        let max = (Keyword::MaxItems, rules.max_items.as_ref());
        let min = (Keyword::MinItems, rules.min_items.as_ref());
        let mut is_valid = self.count::<M>(length, "items", max, min, instance.position);
        if !rules.prefix.is_empty() {
            is_valid = M::and(is_valid, || {
                if let Some(evaluated) = &mut self.evaluated {
                    evaluated.items = evaluated.items.max(rules.prefix.len());
                }
                self.each_item(instance, |index| rules.prefix.get(index).copied().flatten())
            });
        }
        if let Some(items) = &rules.items {
            is_valid = M::and(is_valid, || self.items(items, instance));
        }
        if let Some(contains) = &rules.contains {
            is_valid = M::and(is_valid, || self.contains(contains, instance));
        }
        if let Some(how) = rules.unique {
            is_valid = M::and(is_valid, || self.unique(how, instance));
        }
        if let Some(remainder) = rules.unevaluated {
            is_valid = M::and(is_valid, || self.unevaluated_items(remainder, instance));
        }
        is_valid
    }

    fn items<M: Mode>(&mut self, rule: &ItemsRule, instance: &mut Instance<'_, '_, M>) -> bool {
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.all_items = true;
        }
        self.remaining_items(rule.rest, instance, |index| index < rule.from, (rule.keyword, rule.from))
    }

    /// Applies the schema that `schema_of` gives for an index, if any.
    fn each_item<M: Mode>(
        &mut self,
        instance: &mut Instance<'_, '_, M>,
        schema_of: impl Fn(usize) -> Option<NodeId>,
    ) -> bool {
        let location = instance.position.location;
        M::all(M::items(&mut instance.data).enumerate(), |(index, item)| {
            let schema = schema_of(index);
            schema.is_none_or(|schema| self.visit_child::<M>(schema, item, &location.index(index)))
        })
    }

    /// The items that are not `covered` by other keywords. An error has this keyword and limit.
    fn remaining_items<M: Mode>(
        &mut self,
        remainder: Remainder,
        instance: &mut Instance<'_, '_, M>,
        covered: impl Fn(usize) -> bool,
        (keyword, limit): (Keyword, usize),
    ) -> bool {
        match remainder {
            Remainder::Allowed => true,
            Remainder::Forbidden => {
                (0..items_of(&instance.data).len()).all(covered)
                    || self.fail::<M>(instance.position, || {
                        let message = format!("must NOT have more than {limit} items");
                        (keyword.name(), json!({ "limit": limit }), message)
                    })
            }
            Remainder::Schema(schema) => {
                self.each_item(instance, |index| (!covered(index)).then_some(schema))
            }
        }
    }

    #[inline(never)]
    fn contains<M: Mode>(&mut self, rule: &Contains, instance: &mut Instance<'_, '_, M>) -> bool {
        let (min, max) = (ceiling(&rule.min), rule.max.as_ref().map(floor));
        if min == 0 && max.is_none() && self.evaluated.is_none() {
            return true;
        }
        let (before, position) = (self.error_count, instance.position);
        let is_impossible = max.is_some_and(|max| min > max);
        let (matches, visited) =
            if is_impossible { (0, 0) } else { self.count_matches(rule, min, max, instance) };
        if !is_impossible && matches >= min && max.is_none_or(|max| matches <= max) {
            self.discard_errors_since(before);
            return true;
        }
        for (index, data) in M::items(&mut instance.data).enumerate().take(visited) {
            let location = &position.location.index(index);
            self.explain::<M>(rule.item, &mut Instance { data, position: Position { location, ..position } });
        }
        self.fail::<M>(position, || contains_violation(rule))
    }

    /// How many items match, counted until the result is certain, and how many items that took.
    fn count_matches<M: Mode>(
        &mut self,
        rule: &Contains,
        min: usize,
        max: Option<usize>,
        instance: &mut Instance<'_, '_, M>,
    ) -> (usize, usize) {
        let (length, position) = (items_of(&instance.data).len(), instance.position);
        if rule.item.is_none() {
            if let Some(evaluated) = &mut self.evaluated {
                evaluated.all_items = true;
            }
            return (length, 0);
        }
        let (mut matches, mut visited) = (0, None);
        for (index, data) in M::items(&mut instance.data).enumerate() {
            let location = &position.location.index(index);
            let mut item = Instance { data, position: Position { location, ..position } };
            if self.without_tracking(|validation| validation.try_subschema::<M>(rule.item, &mut item)) {
                matches += 1;
                if let Some(evaluated) = &mut self.evaluated {
                    evaluated.single_items.push(index);
                }
            }
            let is_certain = max.map_or(matches >= min, |max| matches > max);
            if is_certain && visited.is_none() {
                visited = Some(index + 1);
            }
            // Every match counts as evaluated, so the other items matter where that is recorded.
            if is_certain && self.evaluated.is_none() {
                break;
            }
        }
        (matches, visited.unwrap_or(length))
    }

    fn unique<M: Mode>(&mut self, how: UniqueItems, instance: &Instance<'_, '_, M>) -> bool {
        let Some((i, j)) = find_duplicate(items_of(&instance.data), how) else { return true };
        self.fail::<M>(instance.position, || {
            let message = format!("must NOT have duplicate items (items ## {j} and {i} are identical)");
            ("uniqueItems", json!({ "i": i, "j": j }), message)
        })
    }

    #[inline(never)]
    fn unevaluated_items<M: Mode>(
        &mut self,
        remainder: Remainder,
        instance: &mut Instance<'_, '_, M>,
    ) -> bool {
        let Some(evaluated) = &mut self.evaluated else { return true };
        if std::mem::replace(&mut evaluated.all_items, true) {
            return true;
        }
        let is_evaluated = evaluated.evaluated_items(items_of(&instance.data).len());
        let limit = (Keyword::UnevaluatedItems, evaluated.items);
        self.remaining_items(remainder, instance, |index| is_evaluated.get(index) == Some(&true), limit)
    }
}

fn items_of(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Fills in defaults of the older array form of `items`, as long as they leave no gap.
fn fill_items<M: Mode>(rules: &ArrayRules, instance: &mut Instance<'_, '_, M>) {
    if rules.defaults.is_empty() {
        return;
    }
    if let Some(Value::Array(items)) = M::to_fill(&mut instance.data) {
        while let Some(Some(value)) = rules.defaults.get(items.len()) {
            items.push(value.clone());
        }
    }
}

fn contains_violation(rule: &Contains) -> Violation {
    let mut params = json!({ "minContains": rule.min });
    let mut message = format!("must contain at least {}", js_text(&rule.min));
    if let Some(max) = &rule.max {
        params["maxContains"] = json!(max);
        message += &format!(" and no more than {}", js_text(max));
    }
    ("contains", params, message + " valid item(s)")
}
