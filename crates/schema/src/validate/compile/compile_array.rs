//! Keywords for arrays, including the older forms of `items`.

use serde_json::{Number, Value};

use super::{Compiler, Result, Scope, keyword_values as read};
use crate::keyword::{Keyword, Keywords};
use crate::number::{ceiling, floor};
use crate::types::TypeSet;
use crate::validate::compiled_schema::{
    ArrayRules, Contains, ItemsRule, NodeId, SchemaLocation, Subschema, UniqueItems,
};

impl<'s> Compiler<'s> {
    pub(super) fn array(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        scope: &Scope,
    ) -> Result<Option<Box<ArrayRules>>> {
        if !keywords.has_any_for(TypeSet::ARRAY) {
            return Ok(None);
        }
        let mut rules = ArrayRules {
            max_items: read::number(keywords, Keyword::MaxItems)?,
            min_items: read::number(keywords, Keyword::MinItems)?,
            unique: unique(keywords)?,
            unevaluated: self.remainder(id, keywords, Keyword::UnevaluatedItems, scope)?,
            ..ArrayRules::default()
        };
        self.items(id, keywords, scope, &mut rules)?;
        if let Some(schema) = keywords.get(Keyword::Contains) {
            rules.contains = Some(self.contains(id, schema, keywords, scope)?);
        }
        Ok(Some(Box::new(rules)))
    }

    /// Schemas by position and for the other items, in the keywords of either draft.
    fn items(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        scope: &Scope,
        rules: &mut ArrayRules,
    ) -> Result<()> {
        let (prefix_keyword, prefix, items_keyword) = match keywords.get(Keyword::Items) {
            Some(Value::Array(prefix)) => {
                rules.defaults = self.item_defaults(prefix, scope);
                (Keyword::Items, Some(prefix), Keyword::AdditionalItems)
            }
            _ => (Keyword::PrefixItems, read::array(keywords, Keyword::PrefixItems)?, Keyword::Items),
        };
        if let Some(prefix) = prefix {
            rules.prefix = Some(self.list(id, prefix_keyword, prefix, scope)?);
        }
        if let Some(schema) = keywords.get(items_keyword) {
            let is_closed = prefix.is_some() && *schema == Value::Bool(false);
            let location = SchemaLocation::Keyword(id, items_keyword);
            let item = if is_closed { Subschema::Always } else { self.subschema(schema, scope, location)? };
            let from = prefix.map_or(0, Vec::len);
            rules.items = Some(ItemsRule { keyword: items_keyword, from, is_closed, item });
        }
        Ok(())
    }

    fn item_defaults(&mut self, items: &[Value], scope: &Scope) -> Box<[Option<Value>]> {
        let defaults: Box<[Option<Value>]> = items.iter().map(|item| item.get("default").cloned()).collect();
        if scope.is_composite || defaults.iter().all(Option::is_none) {
            return Box::default();
        }
        self.compiled.has_defaults = true;
        defaults
    }

    fn contains(
        &mut self,
        id: NodeId,
        schema: &'s Value,
        keywords: &Keywords<'s>,
        scope: &Scope,
    ) -> Result<Box<Contains>> {
        let min = read::number(keywords, Keyword::MinContains)?.unwrap_or_else(|| Number::from(1));
        let max = read::number(keywords, Keyword::MaxContains)?;
        let location = SchemaLocation::Keyword(id, Keyword::Contains);
        let item = self.subschema(schema, &scope.branch(), location)?;
        let (min_count, max_count) = (ceiling(&min), max.as_ref().map(floor));
        Ok(Box::new(Contains { item, min, max, min_count, max_count }))
    }
}

fn unique(keywords: &Keywords<'_>) -> Result<Option<UniqueItems>> {
    if keywords.get(Keyword::UniqueItems) != Some(&Value::Bool(true)) {
        return Ok(None);
    }
    let types = match keywords.get(Keyword::Items) {
        Some(Value::Object(items)) => read::types(&Keywords::read(items, |_| {}))?.types,
        _ => TypeSet::NONE,
    };
    Ok(Some(if types.is_scalar() { UniqueItems::Scalars(types) } else { UniqueItems::Pairs }))
}
