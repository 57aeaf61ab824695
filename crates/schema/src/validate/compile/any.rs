//! Keywords for values of any type: references, `const` and `enum`, and the logical applicators.

use crate::lint::reference::holds_reference;
use serde_json::Value;

use super::documents::Found;
use super::keyword::{Keywords, always_valid};
use super::{Compiler, Done, Scope, read};
use crate::validate::node::{Condition, Id, Place, Rule, Sub};

impl<'s> Compiler<'s> {
    pub(super) fn any(&mut self, id: Id, words: &Keywords<'s>, scope: &Scope) -> Done<Box<[Rule]>> {
        let mut rules = Vec::new();
        if let Some(reference) = read::text(words.dynamic_ref, "$dynamicRef")? {
            rules.push(self.dynamic(reference, scope)?);
        }
        if let Some(reference) = read::text(words.recursive_ref, "$recursiveRef")? {
            rules.push(self.reference(reference, scope)?);
        }
        if let Some(reference) = read::text(words.reference, "$ref")? {
            rules.push(self.reference(reference, scope)?);
        }
        if let Some(value) = words.constant {
            rules.push(Rule::Const(Box::new(value.clone())));
        }
        if let Some(values) = read::array(words.values, "enum")? {
            rules.push(enumeration(values));
        }
        if let Some(schema) = words.not {
            rules.push(Rule::Not(self.sub(schema, &scope.branch(), Place::Keyword(id, "not"))?));
        }
        if let Some(schemas) = read::array(words.any_of, "anyOf")? {
            rules.push(Rule::AnyOf(self.branches(id, schemas, scope, "anyOf")?));
        }
        if let Some(schemas) = read::array(words.one_of, "oneOf")? {
            rules.push(Rule::OneOf(self.branches(id, schemas, scope, "oneOf")?));
        }
        if let Some(schemas) = read::array(words.all_of, "allOf")? {
            let mut all = Vec::with_capacity(schemas.len());
            for (index, schema) in schemas.iter().enumerate().filter(|(_, schema)| !always_valid(schema)) {
                all.push(self.node(schema, scope, Place::Index(id, "allOf", index))?);
            }
            rules.push(Rule::AllOf(all.into()));
        }
        if let Some(test) = words.test {
            rules.extend(self.condition(id, test, words, scope)?);
        }
        Ok(rules.into())
    }

    fn branches(
        &mut self,
        id: Id,
        schemas: &'s [Value],
        scope: &Scope,
        keyword: &'static str,
    ) -> Done<Box<[Sub]>> {
        let scope = scope.branch();
        let each = schemas.iter().enumerate();
        each.map(|(index, schema)| self.sub(schema, &scope, Place::Index(id, keyword, index))).collect()
    }

    fn condition(
        &mut self,
        id: Id,
        test: &'s Value,
        words: &Keywords<'s>,
        scope: &Scope,
    ) -> Done<Option<Rule>> {
        let mut clause = |schema: Option<&'s Value>, keyword| match schema {
            Some(schema) if !always_valid(schema) => {
                self.node(schema, scope, Place::Keyword(id, keyword)).map(Some)
            }
            _ => Ok(None),
        };
        let (then, otherwise) = (clause(words.then, "then")?, clause(words.otherwise, "else")?);
        // With neither, the test still tells what has been evaluated, if it says anything at all.
        let test = self.sub(test, &scope.branch(), Place::Keyword(id, "if"))?;
        if then.is_none() && otherwise.is_none() && test == Sub::Always {
            return Ok(None);
        }
        Ok(Some(Rule::If(Box::new(Condition { test, then, otherwise }))))
    }

    fn reference(&mut self, reference: &'s str, scope: &Scope) -> Done<Rule> {
        let Found { schema, base } = self.documents.resolve(&scope.base, reference)?;
        let key = (std::ptr::from_ref(schema), reference, scope.composite);
        if let Some(known) = self.inlined.get(&key) {
            return Ok(Rule::Inline(*known));
        }
        let is_unit = self.units.contains_key(&(key.0, std::rc::Rc::clone(&base)));
        if is_unit || holds_reference(schema) {
            return Ok(Rule::Call(self.call(schema, &base, scope)));
        }
        let dialect = self.documents.dialect(&base);
        let inner = Scope { base, composite: scope.composite, dialect };
        let id = self.node(schema, &inner, Place::Reference(reference.into()))?;
        self.inlined.insert(key, id);
        Ok(Rule::Inline(id))
    }

    fn call(&mut self, schema: &'s Value, base: &std::rc::Rc<str>, scope: &Scope) -> Id {
        self.calls_in_branches |= scope.composite;
        self.unit(schema, base)
    }

    /// The target depends on the way here only if it carries the anchor that the reference names.
    fn dynamic(&mut self, reference: &'s str, scope: &Scope) -> Done<Rule> {
        let Found { schema, base } = self.documents.resolve(&scope.base, reference)?;
        let name = crate::lint::uri::fragment(reference).unwrap_or_default();
        let anchor = schema.get("$dynamicAnchor").and_then(Value::as_str);
        let fixed = self.call(schema, &base, scope);
        if anchor != Some(name) {
            return Ok(Rule::Call(fixed));
        }
        let known = self.anchors.iter().position(|other| *other == name);
        let table = known.unwrap_or_else(|| {
            self.anchors.push(name);
            self.arena.dynamic.push(Vec::new());
            self.anchors.len() - 1
        });
        Ok(Rule::Dynamic(fixed, table))
    }

    /// Adds the schemas with a wanted anchor, of the resources that can be entered; `true` if there
    /// was one to add.
    pub(super) fn add_dynamic_targets(&mut self) -> bool {
        let mut added = false;
        for table in 0..self.anchors.len() {
            let name = self.anchors.get(table).copied().unwrap_or_default();
            for Found { schema, base } in self.documents.anchored_as(name) {
                let Some(resource) = self.resources.iter().position(|known| *known == base) else { continue };
                let resource = u32::try_from(resource).unwrap_or(u32::MAX);
                let target = self.unit(schema, &base);
                if let Some(targets) = self.arena.dynamic.get_mut(table)
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

fn enumeration(values: &[Value]) -> Rule {
    let words: Option<Box<[Box<str>]>> = values.iter().map(|value| value.as_str().map(Into::into)).collect();
    words.map_or_else(|| Rule::Enum(values.into()), Rule::Words)
}
