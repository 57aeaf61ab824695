//! Keywords for arrays, including the older forms of `items`.

use serde_json::{Number, Value};

use super::keyword::Keywords;
use super::{Compiler, Done, Scope, read};
use crate::validate::node::{Contains, Id, OfArray, Place, Prefix, Rest, Sub, Unique};
use crate::validate::number;

impl<'s> Compiler<'s> {
    pub(super) fn array(
        &mut self,
        id: Id,
        words: &Keywords<'s>,
        scope: &Scope,
    ) -> Done<Option<Box<OfArray>>> {
        if !words.are_for_arrays() {
            return Ok(None);
        }
        let mut rules = OfArray {
            max_items: read::number(words.max_items, "maxItems")?,
            min_items: read::number(words.min_items, "minItems")?,
            unique: unique(words)?,
            ..OfArray::default()
        };
        self.items(id, words, scope, &mut rules)?;
        if let Some(schema) = words.contains {
            rules.contains = Some(self.contains(id, schema, words, scope)?);
        }
        if let Some(schema) = words.unevaluated_items {
            rules.unevaluated = Some(self.sub2(schema, scope, Place::Keyword(id, "unevaluatedItems"))?);
        }
        Ok(Some(Box::new(rules)))
    }

    /// Schemas by position and for the rest, in either draft's words.
    fn items(&mut self, id: Id, words: &Keywords<'s>, scope: &Scope, rules: &mut OfArray) -> Done<()> {
        match words.items {
            Some(Value::Array(items)) => {
                rules.defaults = self.item_defaults(items, scope);
                rules.prefix = Some(self.prefix(id, items, scope, "items")?);
                if let Some(rest) = words.additional_items {
                    rules.rest = Some(self.rest(id, rest, scope, "additionalItems", Some(items.len()))?);
                }
            }
            items => {
                let prefix = read::array(words.prefix_items, "prefixItems")?;
                if let Some(prefix) = prefix {
                    rules.prefix = Some(self.prefix(id, prefix, scope, "prefixItems")?);
                }
                if let Some(items) = items {
                    rules.rest = Some(self.rest(id, items, scope, "items", prefix.map(Vec::len))?);
                }
            }
        }
        Ok(())
    }

    fn item_defaults(&mut self, items: &[Value], scope: &Scope) -> Box<[Option<Value>]> {
        let defaults: Box<[Option<Value>]> = items.iter().map(|item| item.get("default").cloned()).collect();
        if scope.composite || defaults.iter().all(Option::is_none) {
            return Box::default();
        }
        self.arena.has_defaults = true;
        defaults
    }

    fn prefix(&mut self, id: Id, items: &'s [Value], scope: &Scope, keyword: &'static str) -> Done<Prefix> {
        let each = items.iter().enumerate();
        let items = each
            .map(|(index, schema)| self.sub(schema, scope, Place::Index(id, keyword, index)))
            .collect::<Done<_>>()?;
        Ok(Prefix { items })
    }

    fn rest(
        &mut self,
        id: Id,
        schema: &'s Value,
        scope: &Scope,
        keyword: &'static str,
        prefix: Option<usize>,
    ) -> Done<Rest> {
        let closed = prefix.is_some() && *schema == Value::Bool(false);
        let item = if closed { Sub::Always } else { self.sub(schema, scope, Place::Keyword(id, keyword))? };
        Ok(Rest { keyword, from: prefix.unwrap_or(0), closed, item })
    }

    fn contains(
        &mut self,
        id: Id,
        schema: &'s Value,
        words: &Keywords<'s>,
        scope: &Scope,
    ) -> Done<Box<Contains>> {
        let min = read::number(words.min_contains, "minContains")?.unwrap_or_else(|| Number::from(1));
        let max = read::number(words.max_contains, "maxContains")?;
        let least = number::ceiling(&min);
        let item = self.sub(schema, &scope.branch(), Place::Keyword(id, "contains"))?;
        let most = max.as_ref().map(number::floor);
        Ok(Box::new(Contains { item, min, max, least, most }))
    }
}

fn unique(words: &Keywords<'_>) -> Done<Option<Unique>> {
    if words.unique_items != Some(&Value::Bool(true)) {
        return Ok(None);
    }
    let types = match words.items {
        Some(Value::Object(items)) => read::types(&Keywords::of(items))?.types,
        _ => return Ok(Some(Unique::Pairs)),
    };
    Ok(Some(if types.is_scalar() { Unique::Scalars(types) } else { Unique::Pairs }))
}
