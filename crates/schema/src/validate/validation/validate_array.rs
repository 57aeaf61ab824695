//! Keywords for arrays.

use serde_json::{Value, json};

use super::super::compiled_schema::{
    ArrayRules, Contains, ItemsRule, NodeId, Remainder, Subschema, UniqueItems,
};
use super::super::equality::find_duplicate;
use super::{Mode, Position, Validation};
use crate::keyword::Keyword;
use crate::number::js_text;

impl Validation<'_> {
    #[inline(never)]
    pub(super) fn array<M: Mode>(
        &mut self,
        rules: &ArrayRules,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        fill_items::<M>(rules, data);
        let max = (Keyword::MaxItems, rules.max_items.as_ref());
        let min = (Keyword::MinItems, rules.min_items.as_ref());
        let mut is_valid = self.count::<M>(items_of(data).len(), "items", max, min, position);
        if (is_valid || M::COLLECTS)
            && let Some(prefix) = &rules.prefix
        {
            is_valid &= self.prefix::<M>(prefix, data, position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(items) = &rules.items
        {
            if let Some(evaluated) = &mut self.evaluated {
                evaluated.all_items = true;
            }
            is_valid &= self.items::<M>(items, data, position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(contains) = &rules.contains
        {
            is_valid &= self.contains::<M>(contains, data, position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(how) = rules.unique
        {
            is_valid &= self.unique::<M>(how, items_of(data), position);
        }
        if (is_valid || M::COLLECTS)
            && let Some(remainder) = rules.unevaluated
        {
            is_valid &= self.unevaluated_items::<M>(remainder, data, position);
        }
        is_valid
    }

    #[inline(never)]
    fn prefix<M: Mode>(
        &mut self,
        prefix: &[Subschema],
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.items = evaluated.items.max(prefix.len());
        }
        self.each_item::<M>(data, position, |index| match prefix.get(index) {
            Some(Subschema::Node(schema)) => Some(*schema),
            _ => None,
        })
    }

    fn items<M: Mode>(&mut self, rule: &ItemsRule, data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        if rule.is_closed {
            let is_valid = items_of(data).len() <= rule.from;
            return is_valid || self.too_many_items::<M>(rule.keyword, rule.from, position);
        }
        match rule.item {
            Subschema::Always => true,
            Subschema::Node(schema) => {
                self.each_item::<M>(data, position, |index| (index >= rule.from).then_some(schema))
            }
        }
    }

    /// Applies the schema that `schema_of` gives for an index, if any.
    fn each_item<M: Mode>(
        &mut self,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
        schema_of: impl Fn(usize) -> Option<NodeId>,
    ) -> bool {
        let mut is_valid = true;
        for (index, item) in M::items(data).enumerate() {
            if let Some(schema) = schema_of(index) {
                is_valid &= self.visit_child::<M>(schema, item, &position.instance.index(index));
            }
            if !is_valid && !M::COLLECTS {
                return false;
            }
        }
        is_valid
    }

    fn too_many_items<M: Mode>(&mut self, keyword: Keyword, limit: usize, position: Position<'_>) -> bool {
        self.fail::<M>(position, keyword.name(), || {
            (json!({ "limit": limit }), format!("must NOT have more than {limit} items"))
        })
    }

    #[inline(never)]
    fn contains<M: Mode>(&mut self, rule: &Contains, data: &mut M::Ref<'_>, position: Position<'_>) -> bool {
        if rule.min_count == 0 && rule.max_count.is_none() && self.evaluated.is_none() {
            return true;
        }
        let before = self.error_count;
        let is_impossible = rule.max_count.is_some_and(|max| rule.min_count > max);
        let (matches, visited) =
            if is_impossible { (0, 0) } else { self.count_matches::<M>(rule, data, position) };
        let is_enough = matches >= rule.min_count && rule.max_count.is_none_or(|max| matches <= max);
        if is_enough && !is_impossible {
            self.discard_errors_since(before);
            return true;
        }
        for (index, mut item) in M::items(data).enumerate().take(visited) {
            self.explain::<M>(rule.item, &mut item, &position.instance.index(index));
        }
        self.fail::<M>(position, "contains", || contains_error(rule))
    }

    /// How many items match, counted until the result is certain, and how many items that took.
    fn count_matches<M: Mode>(
        &mut self,
        rule: &Contains,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> (usize, usize) {
        let length = items_of(data).len();
        let Subschema::Node(_) = rule.item else {
            if let Some(evaluated) = &mut self.evaluated {
                evaluated.all_items = true;
            }
            return (length, 0);
        };
        let (mut matches, mut visited) = (0, None);
        for (index, mut item) in M::items(data).enumerate() {
            let instance = position.instance.index(index);
            if self.untracked(|validation| validation.try_subschema::<M>(rule.item, &mut item, &instance)) {
                matches += 1;
                if let Some(evaluated) = &mut self.evaluated {
                    evaluated.single_items.push(index);
                }
            }
            let is_certain = match rule.max_count {
                None => matches >= rule.min_count,
                Some(max) => matches > max,
            };
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

    fn unique<M: Mode>(&mut self, how: UniqueItems, items: &[Value], position: Position<'_>) -> bool {
        let Some((i, j)) = find_duplicate(items, how) else { return true };
        self.fail::<M>(position, "uniqueItems", || {
            let message = format!("must NOT have duplicate items (items ## {j} and {i} are identical)");
            (json!({ "i": i, "j": j }), message)
        })
    }

    #[inline(never)]
    fn unevaluated_items<M: Mode>(
        &mut self,
        remainder: Remainder,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
    ) -> bool {
        let Some(evaluated) = &mut self.evaluated else { return true };
        if std::mem::replace(&mut evaluated.all_items, true) {
            return true;
        }
        let (from_start, is_evaluated) = (evaluated.items, evaluated.evaluated_items(items_of(data).len()));
        match remainder {
            Remainder::Allowed => true,
            Remainder::Forbidden => {
                let keyword = Keyword::UnevaluatedItems;
                is_evaluated.iter().all(|item| *item)
                    || self.too_many_items::<M>(keyword, from_start, position)
            }
            Remainder::Schema(schema) => self.each_item::<M>(data, position, |index| {
                let is_evaluated = is_evaluated.get(index).copied().unwrap_or_default();
                (!is_evaluated).then_some(schema)
            }),
        }
    }
}

fn items_of(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Fills in defaults of the older array form of `items`, as long as they leave no gap.
fn fill_items<M: Mode>(rules: &ArrayRules, data: &mut M::Ref<'_>) {
    if rules.defaults.is_empty() {
        return;
    }
    if let Some(items) = M::array_to_fill(data) {
        while let Some(Some(value)) = rules.defaults.get(items.len()) {
            items.push(value.clone());
        }
    }
}

fn contains_error(rule: &Contains) -> (Value, String) {
    let (min, min_text) = (&rule.min, js_text(&rule.min));
    match &rule.max {
        None => (json!({ "minContains": min }), format!("must contain at least {min_text} valid item(s)")),
        Some(max) => {
            let max_text = js_text(max);
            let message =
                format!("must contain at least {min_text} and no more than {max_text} valid item(s)");
            (json!({ "minContains": min, "maxContains": max }), message)
        }
    }
}
