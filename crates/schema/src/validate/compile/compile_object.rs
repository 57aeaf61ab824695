//! Keywords for objects.

use serde_json::Value;

use super::keyword_values::names;
use super::{Compiler, Result, Source};
use crate::keyword::{Keyword, Keywords};
use crate::pattern::Pattern;
use crate::types::TypeSet;
use crate::validate::CompileError;
use crate::validate::compiled_schema::{
    Dependencies, Node, ObjectRules, Property, PropertyDefault, RequiredProperty, StringRule, Subschema,
};
use crate::validate::member_order::in_javascript_order;

impl<'s> Compiler<'s> {
    pub(super) fn object(&mut self, source: Source<'_, 's>) -> Result<Option<Box<ObjectRules>>> {
        let keywords = source.keywords;
        if !keywords.has_any_for(TypeSet::OBJECT) {
            return Ok(None);
        }
        let dependent = [Keyword::DependentRequired, Keyword::DependentSchemas];
        let mut rules = ObjectRules {
            max_properties: keywords.number(Keyword::MaxProperties)?,
            min_properties: keywords.number(Keyword::MinProperties)?,
            patterns: self.pattern_properties(source)?,
            dependencies: self.dependencies(source, &[Keyword::Dependencies])?,
            dependent: self.dependencies(source, &dependent)?,
            additional: self.remainder(source, Keyword::AdditionalProperties)?,
            unevaluated: self.remainder(source, Keyword::UnevaluatedProperties)?,
            names: self.keyword_schema(source, Keyword::PropertyNames, source.branch)?.flatten(),
            ..ObjectRules::default()
        };
        self.properties(source, &mut rules)?;
        rules.required = required(keywords, &rules)?;
        rules.summarize();
        Ok(Some(Box::new(rules)))
    }

    fn properties(&mut self, source: Source<'_, 's>, rules: &mut ObjectRules) -> Result<()> {
        let Some(object) = source.keywords.object(Keyword::Properties)? else { return Ok(()) };
        let mut properties = Vec::with_capacity(object.len());
        let mut defaults = Vec::new();
        for (slot, (name, schema)) in in_javascript_order(object).into_iter().enumerate() {
            let subschema = self.subschema(schema, source.scope, source.member(Keyword::Properties, name))?;
            properties.push(Property { name: name.as_str().into(), schema: subschema });
            if let Some(value) = schema.get("default").filter(|_| !source.scope.is_composite) {
                let slot = u16::try_from(slot).unwrap_or(u16::MAX);
                let is_valid = self.plainly_accepts(subschema, value);
                defaults.push(PropertyDefault { slot, value: value.clone(), is_valid });
            }
        }
        if properties.len() >= usize::from(u16::MAX) {
            let message = format!("`properties` must have fewer than {} members", u16::MAX);
            return Err(CompileError::new(message));
        }
        let mut sorted: Box<[u16]> = (0..).take(properties.len()).collect();
        sorted.sort_by_key(|slot| properties.get(usize::from(*slot)).map(|property| &property.name));
        rules.sorted_slots = sorted;
        self.compiled.has_defaults |= !defaults.is_empty();
        rules.properties = properties.into();
        rules.defaults = defaults.into();
        Ok(())
    }

    /// Whether a schema accepts a default, as far as that is cheap to decide: patterns and schemas with subschemas are
    /// left to the validation.
    fn plainly_accepts(&self, schema: Subschema, value: &Value) -> bool {
        if value.is_object() || value.is_array() {
            return false;
        }
        let Some(id) = schema else { return true };
        let has_pattern = |node: &Node| node.string.iter().any(|rule| matches!(rule, StringRule::Pattern(_)));
        let node = self.compiled.nodes.get(id as usize);
        node.is_some_and(|node| node.is_leaf && !has_pattern(node) && node.leaf_accepts(value))
    }

    fn pattern_properties(&mut self, source: Source<'_, 's>) -> Result<Box<[(Pattern, Subschema)]>> {
        let Some(object) = source.keywords.object(Keyword::PatternProperties)? else {
            return Ok(Box::default());
        };
        let compile = |(pattern, schema): (&'s String, &'s Value)| {
            let location = source.member(Keyword::PatternProperties, pattern);
            Ok((Pattern::new(pattern), self.subschema(schema, source.scope, location)?))
        };
        in_javascript_order(object).into_iter().map(compile).collect()
    }

    /// Dependencies of properties: lists of names and schemas. The older keyword holds both.
    fn dependencies(
        &mut self,
        source: Source<'_, 's>,
        sources: &[Keyword],
    ) -> Result<Option<Box<Dependencies>>> {
        if !sources.iter().any(|keyword| source.keywords.has(*keyword)) {
            return Ok(None);
        }
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        for keyword in sources.iter().copied() {
            let Some(object) = source.keywords.object(keyword)? else { continue };
            for (name, value) in in_javascript_order(object) {
                let is_list = keyword == Keyword::DependentRequired
                    || (keyword == Keyword::Dependencies && value.is_array());
                if is_list {
                    required.push((name.as_str().into(), names(value, keyword)?));
                } else if let Some(schema) =
                    self.subschema(value, source.scope, source.member(keyword, name))?
                {
                    schemas.push((name.as_str().into(), schema));
                }
            }
        }
        Ok(Some(Box::new(Dependencies { required: required.into(), schemas: schemas.into() })))
    }
}

fn required(keywords: &Keywords<'_>, rules: &ObjectRules) -> Result<Box<[RequiredProperty]>> {
    let value = keywords.get(Keyword::Required).filter(|value| !value.is_boolean());
    let Some(value) = value else { return Ok(Box::default()) };
    let required = names(value, Keyword::Required)?.into_iter().enumerate();
    Ok(required.map(|(hint, name)| RequiredProperty { slot: rules.slot(&name, hint), name }).collect())
}
