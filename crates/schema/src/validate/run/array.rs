//! Keywords for arrays.

use serde_json::{Number, Value, json};

use super::scalar::counted;
use super::{ArrayRules, Mode, Run, Seen};
use crate::validate::equal::duplicate;
use crate::validate::node::{Contains, Id, OfArray, Rest, Sub, Sub2, Unique};
use crate::validate::number;
use crate::validate::path::At;

impl<'c> Run<'c> {
    #[inline(never)]
    pub(super) fn array<M: Mode>(
        &mut self,
        here: ArrayRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let rules: &OfArray = here.rules;
        fill_items::<M>(rules, data);
        let mut valid = self.count_items::<M>(here, items_of(M::get(data)).len());
        if (valid || M::COLLECTS) && rules.prefix.is_some() {
            valid &= self.prefix::<M>(here, data, seen.as_deref_mut());
        }
        if (valid || M::COLLECTS)
            && let Some(rest) = &rules.rest
        {
            if let Some(seen) = seen.as_deref_mut() {
                seen.all_items = true;
            }
            valid &= self.rest::<M>(here, rest, data);
        }
        if (valid || M::COLLECTS)
            && let Some(contains) = &rules.contains
        {
            valid &= self.contains::<M>(here, contains, data, seen.as_deref_mut());
        }
        if (valid || M::COLLECTS)
            && let Some(how) = rules.unique
        {
            valid &= self.unique::<M>(here, how, items_of(M::get(data)));
        }
        if (valid || M::COLLECTS)
            && let (Some(rest), Some(seen)) = (rules.unevaluated, seen)
        {
            valid &= self.unevaluated_items::<M>(here, rest, data, seen);
        }
        valid
    }

    fn count_items<M: Mode>(&mut self, here: ArrayRules<'_, 'c>, length: usize) -> bool {
        let wrong = |run: &mut Self, keyword: &'static str, limit: &Number| {
            run.fail::<M>(here.id, here.at, keyword, || counted(keyword, "maxItems", limit, "items"))
        };
        let mut valid = true;
        if let Some(limit) = here.rules.max_items.as_ref().filter(|limit| length > number::floor(limit)) {
            valid = wrong(self, "maxItems", limit);
        }
        if let Some(limit) = here.rules.min_items.as_ref().filter(|limit| length < number::ceiling(limit)) {
            valid = wrong(self, "minItems", limit);
        }
        valid
    }

    #[inline(never)]
    fn prefix<M: Mode>(
        &mut self,
        here: ArrayRules<'_, 'c>,
        data: &mut M::Ref<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        let Some(prefix) = &here.rules.prefix else { return true };
        if let Some(seen) = seen {
            seen.items = seen.items.max(prefix.items.len());
        }
        let mut valid = true;
        for (index, (item, schema)) in M::items(data).zip(&prefix.items).enumerate() {
            if let Sub::Node(schema) = schema {
                valid &= self.node::<M>(*schema, item, &At::Index(here.at, index), None);
            }
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    fn rest<M: Mode>(&mut self, here: ArrayRules<'_, 'c>, rest: &Rest, data: &mut M::Ref<'_>) -> bool {
        if rest.closed {
            let fits = items_of(M::get(data)).len() <= rest.from;
            return fits || self.too_many::<M>(here.id, here.at, rest.keyword, rest.from);
        }
        match rest.item {
            Sub::Always => true,
            Sub::Node(schema) => self.each_item::<M>(schema, rest.from, here.at, data),
        }
    }

    fn each_item<M: Mode>(&mut self, schema: Id, from: usize, at: &At<'_>, data: &mut M::Ref<'_>) -> bool {
        let mut valid = true;
        for (index, item) in M::items(data).enumerate().skip(from) {
            valid &= self.node::<M>(schema, item, &At::Index(at, index), None);
            if !valid && !M::COLLECTS {
                return false;
            }
        }
        valid
    }

    fn too_many<M: Mode>(&mut self, id: Id, at: &At<'_>, keyword: &'static str, limit: usize) -> bool {
        self.fail::<M>(id, at, keyword, || {
            (json!({ "limit": limit }), format!("must NOT have more than {limit} items"))
        })
    }

    #[inline(never)]
    fn contains<M: Mode>(
        &mut self,
        here: ArrayRules<'_, 'c>,
        contains: &Contains,
        data: &mut M::Ref<'_>,
        seen: Option<&mut Seen<'c>>,
    ) -> bool {
        if contains.least == 0 && contains.most.is_none() && seen.is_none() {
            return true;
        }
        let before = self.count;
        let impossible = contains.most.is_some_and(|most| contains.least > most);
        let (held, looked_at) =
            if impossible { (0, 0) } else { self.count_held::<M>(contains, here.at, data, seen) };
        let enough = held >= contains.least && contains.most.is_none_or(|most| held <= most);
        if enough && !impossible {
            self.reset(before);
            return true;
        }
        for (index, mut item) in M::items(data).enumerate().take(looked_at) {
            self.explain::<M>(contains.item, &mut item, &At::Index(here.at, index));
        }
        self.fail::<M>(here.id, here.at, "contains", || contains_error(contains))
    }

    /// How many items hold, counted as far as it matters, and how many it took to settle that.
    fn count_held<M: Mode>(
        &mut self,
        contains: &Contains,
        at: &At<'_>,
        data: &mut M::Ref<'_>,
        mut seen: Option<&mut Seen<'c>>,
    ) -> (usize, usize) {
        let length = items_of(M::get(data)).len();
        let Sub::Node(_) = contains.item else {
            if let Some(seen) = seen {
                seen.all_items = true;
            }
            return (length, 0);
        };
        let (mut held, mut looked_at) = (0, None);
        for (index, mut item) in M::items(data).enumerate() {
            if self.tries::<M>(contains.item, &mut item, &At::Index(at, index), None) {
                held += 1;
                if let Some(seen) = seen.as_deref_mut() {
                    seen.item(index);
                }
            }
            let settled = match contains.most {
                None => held >= contains.least,
                Some(most) => held > most,
            };
            if settled && looked_at.is_none() {
                looked_at = Some(index + 1);
            }
            // Every item that holds counts as evaluated, so the rest matters where that is asked.
            if settled && seen.is_none() {
                break;
            }
        }
        (held, looked_at.unwrap_or(length))
    }

    fn unique<M: Mode>(&mut self, here: ArrayRules<'_, 'c>, how: Unique, items: &[Value]) -> bool {
        let Some((i, j)) = duplicate(items, how) else { return true };
        self.fail::<M>(here.id, here.at, "uniqueItems", || {
            let message = format!("must NOT have duplicate items (items ## {j} and {i} are identical)");
            (json!({ "i": i, "j": j }), message)
        })
    }

    #[inline(never)]
    fn unevaluated_items<M: Mode>(
        &mut self,
        here: ArrayRules<'_, 'c>,
        rest: Sub2,
        data: &mut M::Ref<'_>,
        seen: &mut Seen<'c>,
    ) -> bool {
        if std::mem::replace(&mut seen.all_items, true) {
            return true;
        }
        let length = items_of(M::get(data)).len();
        let evaluated = seen.marked_items(length);
        match rest {
            Sub2::Always => true,
            Sub2::Never => {
                let all = evaluated.iter().all(|item| *item);
                all || self.too_many::<M>(here.id, here.at, "unevaluatedItems", seen.items)
            }
            Sub2::Node(schema) => {
                let mut valid = true;
                for (index, item) in M::items(data).enumerate() {
                    if !evaluated.get(index).copied().unwrap_or_default() {
                        valid &= self.node::<M>(schema, item, &At::Index(here.at, index), None);
                    }
                    if !valid && !M::COLLECTS {
                        return false;
                    }
                }
                valid
            }
        }
    }
}

fn items_of(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Defaults of the older array form of `items`, as long as they leave no gap.
fn fill_items<M: Mode>(rules: &OfArray, data: &mut M::Ref<'_>) {
    if rules.defaults.is_empty() {
        return;
    }
    if let Some(items) = M::array_to_fill(data) {
        while let Some(Some(value)) = rules.defaults.get(items.len()) {
            items.push(value.clone());
        }
    }
}

fn contains_error(contains: &Contains) -> (Value, String) {
    let (min, least) = (&contains.min, number::js_text(&contains.min));
    match &contains.max {
        None => (json!({ "minContains": min }), format!("must contain at least {least} valid item(s)")),
        Some(max) => {
            let most = number::js_text(max);
            let message = format!("must contain at least {least} and no more than {most} valid item(s)");
            (json!({ "minContains": min, "maxContains": max }), message)
        }
    }
}
