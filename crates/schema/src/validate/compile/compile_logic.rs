//! Keywords for values of any type: references, `const` and `enum`, and the logical applicators.

use std::rc::Rc;

use serde_json::Value;

use super::documents::SchemaWithBase;
use super::{Compiler, Result, Scope, Source};
use crate::keyword::Keyword;
use crate::lint::lint_reference::contains_reference;
use crate::uri;
use crate::validate::compiled_schema::{Condition, NodeId, Rule, SchemaLocation};

impl<'s> Compiler<'s> {
    pub(super) fn any(&mut self, source: Source<'_, 's>) -> Result<Box<[Rule]>> {
        let Source { keywords, scope, branch, .. } = source;
        let mut rules = Vec::new();
        if let Some(reference) = keywords.text(Keyword::DynamicRef)? {
            rules.push(self.dynamic_reference(reference, scope)?);
        }
        for keyword in [Keyword::RecursiveRef, Keyword::Ref] {
            if let Some(reference) = keywords.text(keyword)? {
                rules.push(self.reference(reference, scope)?);
            }
        }
        rules.extend(keywords.get(Keyword::Const).map(|value| Rule::Const(Box::new(value.clone()))));
        rules.extend(keywords.array(Keyword::Enum)?.map(|values| Rule::Enum(values.as_slice().into())));
        rules.extend(self.keyword_schema(source, Keyword::Not, branch)?.map(Rule::Not));
        rules.extend(self.list(source, Keyword::AnyOf, branch)?.map(Rule::AnyOf));
        rules.extend(self.list(source, Keyword::OneOf, branch)?.map(Rule::OneOf));
        let all = self.list(source, Keyword::AllOf, scope)?;
        rules.extend(all.map(|schemas| Rule::AllOf(schemas.into_iter().flatten().collect())));
        rules.extend(self.condition(source)?);
        Ok(rules.into())
    }

    fn condition(&mut self, source: Source<'_, 's>) -> Result<Option<Rule>> {
        let Some(test) = self.keyword_schema(source, Keyword::If, source.branch)? else { return Ok(None) };
        let then = self.keyword_schema(source, Keyword::Then, source.scope)?.flatten();
        let otherwise = self.keyword_schema(source, Keyword::Else, source.scope)?.flatten();
        // Without both, the test still says what is evaluated, unless it allows everything.
        let has_effect = then.is_some() || otherwise.is_some() || test.is_some();
        Ok(has_effect.then(|| Rule::If(Box::new(Condition { test, then, otherwise }))))
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
