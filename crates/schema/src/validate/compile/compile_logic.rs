//! Keywords for values of any type: references, `const` and `enum`, and the logical applicators.

use std::rc::Rc;

use serde_json::Value;

use super::documents::SchemaWithBase;
use super::{Compiler, Result, Scope, allows_everything, keyword_values as read};
use crate::keyword::{Keyword, Keywords};
use crate::lint::lint_reference::contains_reference;
use crate::uri;
use crate::validate::compiled_schema::{Condition, Names, NodeId, Rule, SchemaLocation, Subschema};

impl<'s> Compiler<'s> {
    pub(super) fn any(&mut self, id: NodeId, keywords: &Keywords<'s>, scope: &Scope) -> Result<Box<[Rule]>> {
        let mut rules = Vec::new();
        if let Some(reference) = read::text(keywords, Keyword::DynamicRef)? {
            rules.push(self.dynamic_reference(reference, scope)?);
        }
        for keyword in [Keyword::RecursiveRef, Keyword::Ref] {
            if let Some(reference) = read::text(keywords, keyword)? {
                rules.push(self.reference(reference, scope)?);
            }
        }
        if let Some(value) = keywords.get(Keyword::Const) {
            rules.push(Rule::Const(Box::new(value.clone())));
        }
        if let Some(values) = read::array(keywords, Keyword::Enum)? {
            let names: Option<Names> = values.iter().map(|value| value.as_str().map(Into::into)).collect();
            rules.push(names.map_or_else(|| Rule::Enum(values.as_slice().into()), Rule::StringEnum));
        }
        if let Some(schema) = keywords.get(Keyword::Not) {
            let location = SchemaLocation::Keyword(id, Keyword::Not);
            rules.push(Rule::Not(self.subschema(schema, &scope.branch(), location)?));
        }
        if let Some(schemas) = read::array(keywords, Keyword::AnyOf)? {
            rules.push(Rule::AnyOf(self.list(id, Keyword::AnyOf, schemas, &scope.branch())?));
        }
        if let Some(schemas) = read::array(keywords, Keyword::OneOf)? {
            rules.push(Rule::OneOf(self.list(id, Keyword::OneOf, schemas, &scope.branch())?));
        }
        if let Some(schemas) = read::array(keywords, Keyword::AllOf)? {
            let node = |schema| match schema {
                Subschema::Always => None,
                Subschema::Node(node) => Some(node),
            };
            let schemas = self.list(id, Keyword::AllOf, schemas, scope)?;
            rules.push(Rule::AllOf(schemas.into_iter().filter_map(node).collect()));
        }
        if let Some(test) = keywords.get(Keyword::If) {
            rules.extend(self.condition(id, test, keywords, scope)?);
        }
        Ok(rules.into())
    }

    fn condition(
        &mut self,
        id: NodeId,
        test: &'s Value,
        keywords: &Keywords<'s>,
        scope: &Scope,
    ) -> Result<Option<Rule>> {
        let mut clause = |keyword| match keywords.get(keyword) {
            Some(schema) if !allows_everything(schema) => {
                self.node(schema, scope, SchemaLocation::Keyword(id, keyword)).map(Some)
            }
            _ => Ok(None),
        };
        let (then, otherwise) = (clause(Keyword::Then)?, clause(Keyword::Else)?);
        // Without both, the test still says what is evaluated, unless it allows everything.
        let test = self.subschema(test, &scope.branch(), SchemaLocation::Keyword(id, Keyword::If))?;
        if then.is_none() && otherwise.is_none() && test == Subschema::Always {
            return Ok(None);
        }
        Ok(Some(Rule::If(Box::new(Condition { test, then, otherwise }))))
    }

    fn reference(&mut self, reference: &'s str, scope: &Scope) -> Result<Rule> {
        let SchemaWithBase { schema, base } = self.documents.resolve(&scope.base, reference)?;
        let key = (std::ptr::from_ref(schema), reference, scope.is_composite);
        if let Some(known) = self.inlined.get(&key) {
            return Ok(Rule::Reference(*known));
        }
        let is_function = self.functions.contains_key(&(key.0, Rc::clone(&base)));
        if is_function || contains_reference(schema) {
            return Ok(Rule::Reference(self.call(schema, &base, scope)));
        }
        let dialect = self.documents.dialect(&base);
        let inner = Scope { base, is_composite: scope.is_composite, dialect };
        let id = self.node(schema, &inner, SchemaLocation::Reference(reference.into()))?;
        self.inlined.insert(key, id);
        Ok(Rule::Reference(id))
    }

    fn call(&mut self, schema: &'s Value, base: &Rc<str>, scope: &Scope) -> NodeId {
        self.calls_in_branches |= scope.is_composite;
        self.function(schema, base)
    }

    /// The target depends on the dynamic scope only if it has the anchor that the reference names.
    fn dynamic_reference(&mut self, reference: &'s str, scope: &Scope) -> Result<Rule> {
        let SchemaWithBase { schema, base } = self.documents.resolve(&scope.base, reference)?;
        let name = uri::fragment(reference).unwrap_or_default();
        let anchor = schema.get("$dynamicAnchor").and_then(Value::as_str);
        let fixed = self.call(schema, &base, scope);
        if anchor != Some(name) {
            return Ok(Rule::Reference(fixed));
        }
        let known = self.anchors.iter().position(|other| *other == name);
        let table = known.unwrap_or_else(|| {
            self.anchors.push(name);
            self.compiled.dynamic_targets.push(Vec::new());
            self.anchors.len() - 1
        });
        Ok(Rule::DynamicReference(fixed, table))
    }

    /// Adds the schemas with a wanted anchor in the resources that can be entered; `true` if there was one to add.
    pub(super) fn add_dynamic_targets(&mut self) -> bool {
        let mut added = false;
        for table in 0..self.anchors.len() {
            let name = self.anchors.get(table).copied().unwrap_or_default();
            for SchemaWithBase { schema, base } in self.documents.with_dynamic_anchor(name) {
                let Some(resource) = self.resources.iter().position(|known| *known == base) else { continue };
                let resource = u32::try_from(resource).unwrap_or(u32::MAX);
                let target = self.function(schema, &base);
                if let Some(targets) = self.compiled.dynamic_targets.get_mut(table)
                    && !targets.contains(&(resource, target))
                {
                    targets.push((resource, target));
                    added = true;
                }
            }
        }
        added
    }
}
