//! Keywords for objects.

use serde_json::Value;

use super::keyword::{Keywords, always_valid};
use super::{Compiler, Done, Scope, read};
use crate::validate::CompileError;
use crate::validate::node::{
    Dependencies, FEW_PROPERTIES, Filling, Id, Node, OfObject, OfString, Place, Property, Required, Sub,
};
use crate::validate::pattern::Pattern;

impl<'s> Compiler<'s> {
    pub(super) fn object(
        &mut self,
        id: Id,
        words: &Keywords<'s>,
        scope: &Scope,
    ) -> Done<Option<Box<OfObject>>> {
        if !words.are_for_objects() {
            return Ok(None);
        }
        let mut rules = OfObject {
            max_properties: read::number(words.max_properties, "maxProperties")?,
            min_properties: read::number(words.min_properties, "minProperties")?,
            patterns: self.patterns(id, words, scope)?,
            dependencies: self.dependencies(id, words, scope)?,
            dependent: self.dependent(id, words, scope)?,
            ..OfObject::default()
        };
        self.properties(id, words, scope, &mut rules)?;
        rules.required = required(words, &rules)?;
        if let Some(schema) = words.property_names.filter(|schema| !always_valid(schema)) {
            let place = Place::Keyword(id, "propertyNames");
            rules.names = Some(self.node(schema, &scope.branch(), place)?);
        }
        if let Some(schema) = words.additional_properties {
            rules.additional = Some(self.sub2(schema, scope, Place::Keyword(id, "additionalProperties"))?);
        }
        if let Some(schema) = words.unevaluated_properties {
            let place = Place::Keyword(id, "unevaluatedProperties");
            rules.unevaluated = Some(self.sub2(schema, scope, place)?);
        }
        rules.summarise();
        Ok(Some(Box::new(rules)))
    }

    fn properties(&mut self, id: Id, words: &Keywords<'s>, scope: &Scope, rules: &mut OfObject) -> Done<()> {
        let Some(object) = read::object(words.properties, "properties")? else { return Ok(()) };
        let mut properties = Vec::with_capacity(object.len());
        let mut defaults = Vec::new();
        for (slot, (name, schema)) in read::in_order(object).into_iter().enumerate() {
            let place = Place::Member(id, "properties", name.as_str().into());
            let sub = self.sub(schema, scope, place)?;
            properties.push(Property { name: name.as_str().into(), schema: sub });
            if let Some(value) = schema.get("default").filter(|_| !scope.composite) {
                let slot = u16::try_from(slot).unwrap_or(u16::MAX);
                defaults.push(Filling { slot, value: value.clone(), holds: self.holds(sub, value) });
            }
        }
        if properties.len() >= usize::from(u16::MAX) {
            return Err(CompileError::new("too many properties"));
        }
        if properties.len() > FEW_PROPERTIES {
            let mut sorted: Vec<u16> = (0..).take(properties.len()).collect();
            sorted.sort_by_key(|slot| properties.get(usize::from(*slot)).map(|property| &property.name));
            rules.sorted = sorted.into();
        }
        self.arena.has_defaults |= !defaults.is_empty();
        rules.properties = properties.into();
        rules.defaults = defaults.into();
        Ok(())
    }

    /// Whether a default plainly fits its schema. What would take long to find out, a pattern or a schema of several
    /// parts, is left to the checks.
    fn holds(&self, schema: Sub, value: &Value) -> bool {
        if value.is_object() || value.is_array() {
            return false;
        }
        let Sub::Node(id) = schema else { return true };
        let has_pattern = |node: &Node| node.string.iter().any(|rule| matches!(rule, OfString::Pattern(_)));
        let node = self.arena.nodes.get(id as usize);
        node.is_some_and(|node| node.is_leaf && !has_pattern(node) && node.leaf_holds(value))
    }

    fn patterns(&mut self, id: Id, words: &Keywords<'s>, scope: &Scope) -> Done<Box<[(Pattern, Sub)]>> {
        let Some(object) = read::object(words.pattern_properties, "patternProperties")? else {
            return Ok(Box::default());
        };
        let each = read::in_order(object).into_iter();
        each.map(|(pattern, schema)| {
            let place = Place::Member(id, "patternProperties", pattern.as_str().into());
            Ok((Pattern::new(pattern), self.sub(schema, scope, place)?))
        })
        .collect()
    }

    /// The older keyword, which takes lists of names and schemas alike.
    fn dependencies(
        &mut self,
        id: Id,
        words: &Keywords<'s>,
        scope: &Scope,
    ) -> Done<Option<Box<Dependencies>>> {
        let Some(object) = read::object(words.dependencies, "dependencies")? else { return Ok(None) };
        let (mut lists, mut schemas) = (Vec::new(), Vec::new());
        for (name, value) in read::in_order(object) {
            if value.is_array() {
                lists.push((name.as_str().into(), read::names(value, "dependencies")?));
            } else if !always_valid(value) {
                let place = Place::Member(id, "dependencies", name.as_str().into());
                schemas.push((name.as_str().into(), self.node(value, scope, place)?));
            }
        }
        Ok(Some(Box::new(Dependencies { required: lists.into(), schemas: schemas.into() })))
    }

    fn dependent(&mut self, id: Id, words: &Keywords<'s>, scope: &Scope) -> Done<Option<Box<Dependencies>>> {
        let lists = read::object(words.dependent_required, "dependentRequired")?;
        let schemas = read::object(words.dependent_schemas, "dependentSchemas")?;
        if lists.is_none() && schemas.is_none() {
            return Ok(None);
        }
        let mut rules = (Vec::new(), Vec::new());
        for (name, value) in lists.map(read::in_order).unwrap_or_default() {
            rules.0.push((name.as_str().into(), read::names(value, "dependentRequired")?));
        }
        for (name, schema) in schemas.map(read::in_order).unwrap_or_default() {
            if !always_valid(schema) {
                let place = Place::Member(id, "dependentSchemas", name.as_str().into());
                rules.1.push((name.as_str().into(), self.node(schema, scope, place)?));
            }
        }
        Ok(Some(Box::new(Dependencies { required: rules.0.into(), schemas: rules.1.into() })))
    }
}

fn required(words: &Keywords<'_>, rules: &OfObject) -> Done<Box<[Required]>> {
    let Some(value) = words.required.filter(|value| !value.is_boolean()) else { return Ok(Box::default()) };
    let names = read::names(value, "required")?;
    let each = names.into_iter().enumerate();
    Ok(each.map(|(at, name)| Required { slot: rules.slot(&name, at), name }).collect())
}
