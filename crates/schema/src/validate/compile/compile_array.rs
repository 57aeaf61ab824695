//! Keywords for arrays, including the older forms of `items`.

use serde_json::{Number, Value};

use super::{Compiler, Result, Scope, Source};
use crate::keyword::{Keyword, Keywords};
use crate::types::TypeSet;
use crate::validate::compiled_schema::{ArrayRules, Contains, ItemsRule, Remainder, UniqueItems};

impl<'s> Compiler<'s> {
    pub(super) fn array(&mut self, source: Source<'_, 's>) -> Result<Option<Box<ArrayRules>>> {
        let keywords = source.keywords;
        if !keywords.has_any_for(TypeSet::ARRAY) {
            return Ok(None);
        }
        let mut rules = ArrayRules {
            max_items: keywords.number(Keyword::MaxItems)?,
            min_items: keywords.number(Keyword::MinItems)?,
            unique: unique(keywords)?,
            unevaluated: self.remainder(source, Keyword::UnevaluatedItems)?,
            ..ArrayRules::default()
        };
        self.items(source, &mut rules)?;
        if let Some(item) = self.keyword_schema(source, Keyword::Contains, source.branch)? {
            let min = keywords.number(Keyword::MinContains)?.unwrap_or_else(|| Number::from(1));
            rules.contains =
                Some(Box::new(Contains { item, min, max: keywords.number(Keyword::MaxContains)? }));
        }
        Ok(Some(Box::new(rules)))
    }

    /// Schemas by position and for the other items, in the keywords of either draft.
    fn items(&mut self, source: Source<'_, 's>, rules: &mut ArrayRules) -> Result<()> {
        let (prefix_keyword, keyword) = match source.keywords.get(Keyword::Items) {
            Some(Value::Array(prefix)) => {
                rules.defaults = self.item_defaults(prefix, source.scope);
                (Keyword::Items, Keyword::AdditionalItems)
            }
            _ => (Keyword::PrefixItems, Keyword::Items),
        };
        let prefix = self.list(source, prefix_keyword, source.scope)?;
        let rest = if prefix.is_some() {
            self.remainder(source, keyword)?
        } else {
            self.keyword_schema(source, keyword, source.scope)?.map(Remainder::from)
        };
        rules.prefix = prefix.unwrap_or_default();
        rules.items = rest.map(|rest| ItemsRule { keyword, from: rules.prefix.len(), rest });
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
}

fn unique(keywords: &Keywords<'_>) -> Result<Option<UniqueItems>> {
    if keywords.get(Keyword::UniqueItems) != Some(&Value::Bool(true)) {
        return Ok(None);
    }
    let types = match keywords.get(Keyword::Items) {
        Some(Value::Object(items)) => Keywords::read(items, |_| {}).types()?.types,
        _ => TypeSet::NONE,
    };
    Ok(Some(if types.is_scalar() { UniqueItems::Scalars(types) } else { UniqueItems::Pairs }))
}
