//! Keywords for objects.

use serde_json::Value;

use super::{Compiler, Result, Scope, allows_everything, keyword_values as read};
use crate::keyword::{Keyword, Keywords};
use crate::pattern::Pattern;
use crate::types::TypeSet;
use crate::validate::CompileError;
use crate::validate::compiled_schema::{
    Dependencies, MAX_LINEAR_SEARCH, Node, NodeId, ObjectRules, Property, PropertyDefault, RequiredProperty,
    SchemaLocation, StringRule, Subschema,
};
use crate::validate::member_order::in_javascript_order;

impl<'s> Compiler<'s> {
    pub(super) fn object(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        scope: &Scope,
    ) -> Result<Option<Box<ObjectRules>>> {
        if !keywords.has_any_for(TypeSet::OBJECT) {
            return Ok(None);
        }
        let mut rules = ObjectRules {
            max_properties: read::number(keywords, Keyword::MaxProperties)?,
            min_properties: read::number(keywords, Keyword::MinProperties)?,
            patterns: self.pattern_properties(id, keywords, scope)?,
            dependencies: self.dependencies(id, keywords, &[Keyword::Dependencies], scope)?,
            dependent: self.dependencies(
                id,
                keywords,
                &[Keyword::DependentRequired, Keyword::DependentSchemas],
                scope,
            )?,
            additional: self.remainder(id, keywords, Keyword::AdditionalProperties, scope)?,
            unevaluated: self.remainder(id, keywords, Keyword::UnevaluatedProperties, scope)?,
            ..ObjectRules::default()
        };
        self.properties(id, keywords, scope, &mut rules)?;
        rules.required = required(keywords, &rules)?;
        if let Some(schema) = keywords.get(Keyword::PropertyNames).filter(|schema| !allows_everything(schema))
        {
            let location = SchemaLocation::Keyword(id, Keyword::PropertyNames);
            rules.names = Some(self.node(schema, &scope.branch(), location)?);
        }
        rules.summarize();
        Ok(Some(Box::new(rules)))
    }

    fn properties(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        scope: &Scope,
        rules: &mut ObjectRules,
    ) -> Result<()> {
        let Some(object) = read::object(keywords, Keyword::Properties)? else { return Ok(()) };
        let mut properties = Vec::with_capacity(object.len());
        let mut defaults = Vec::new();
        for (slot, (name, schema)) in in_javascript_order(object).into_iter().enumerate() {
            let location = SchemaLocation::Member(id, Keyword::Properties, name.as_str().into());
            let subschema = self.subschema(schema, scope, location)?;
            properties.push(Property { name: name.as_str().into(), schema: subschema });
            if let Some(value) = schema.get("default").filter(|_| !scope.is_composite) {
                let slot = u16::try_from(slot).unwrap_or(u16::MAX);
                let is_valid = self.plainly_accepts(subschema, value);
                defaults.push(PropertyDefault { slot, value: value.clone(), is_valid });
            }
        }
        if properties.len() >= usize::from(u16::MAX) {
            let message = format!("`properties` must have fewer than {} members", u16::MAX);
            return Err(CompileError::new(message));
        }
        if properties.len() > MAX_LINEAR_SEARCH {
            let mut sorted: Vec<u16> = (0..).take(properties.len()).collect();
            sorted.sort_by_key(|slot| properties.get(usize::from(*slot)).map(|property| &property.name));
            rules.sorted_slots = sorted.into();
        }
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
        let Subschema::Node(id) = schema else { return true };
        let has_pattern = |node: &Node| node.string.iter().any(|rule| matches!(rule, StringRule::Pattern(_)));
        let node = self.compiled.nodes.get(id as usize);
        node.is_some_and(|node| node.is_leaf && !has_pattern(node) && node.leaf_accepts(value))
    }

    fn pattern_properties(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        scope: &Scope,
    ) -> Result<Box<[(Pattern, Subschema)]>> {
        let Some(object) = read::object(keywords, Keyword::PatternProperties)? else {
            return Ok(Box::default());
        };
        let compile = |(pattern, schema): (&'s String, &'s Value)| {
            let location = SchemaLocation::Member(id, Keyword::PatternProperties, pattern.as_str().into());
            Ok((Pattern::new(pattern), self.subschema(schema, scope, location)?))
        };
        in_javascript_order(object).into_iter().map(compile).collect()
    }

    /// Dependencies of properties: lists of names and schemas. The older keyword holds both.
    fn dependencies(
        &mut self,
        id: NodeId,
        keywords: &Keywords<'s>,
        sources: &[Keyword],
        scope: &Scope,
    ) -> Result<Option<Box<Dependencies>>> {
        if !sources.iter().any(|keyword| keywords.has(*keyword)) {
            return Ok(None);
        }
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        for keyword in sources.iter().copied() {
            let Some(object) = read::object(keywords, keyword)? else { continue };
            for (name, value) in in_javascript_order(object) {
                let is_list = keyword == Keyword::DependentRequired
                    || (keyword == Keyword::Dependencies && value.is_array());
                if is_list {
                    required.push((name.as_str().into(), read::names(value, keyword)?));
                } else if !allows_everything(value) {
                    let location = SchemaLocation::Member(id, keyword, name.as_str().into());
                    schemas.push((name.as_str().into(), self.node(value, scope, location)?));
                }
            }
        }
        Ok(Some(Box::new(Dependencies { required: required.into(), schemas: schemas.into() })))
    }
}

fn required(keywords: &Keywords<'_>, rules: &ObjectRules) -> Result<Box<[RequiredProperty]>> {
    let value = keywords.get(Keyword::Required).filter(|value| !value.is_boolean());
    let Some(value) = value else { return Ok(Box::default()) };
    let names = read::names(value, Keyword::Required)?.into_iter().enumerate();
    Ok(names.map(|(hint, name)| RequiredProperty { slot: rules.slot(&name, hint), name }).collect())
}
