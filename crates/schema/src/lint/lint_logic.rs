//! The keywords for any type: `enum`, the logical combinations and `if`.

use serde_json::Value;

use super::linter::{Linter, SchemaVisit};
use super::problem::Problem;
use super::scope::Scope;
use crate::keyword::{Keyword, has_rules};
use crate::pointer::Location;

impl<'s> Linter<'s> {
    pub(super) fn any_group(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        self.dynamic_reference(schema, scope);
        if schema.has(Keyword::LegacyId) {
            let problem =
                Problem::at_key("schema-unknown-keyword", &schema.key("id"), "`id` is not supported");
            self.report.add(problem.help("did you mean `$id`?"));
        }
        if schema.has(Keyword::Ref) {
            self.reference(schema, scope);
        }
        if schema.get(Keyword::Enum).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            let message = "`enum` is empty, so no value is valid";
            let problem = Problem::at_value("schema-empty-enum", &schema.key("enum"), message);
            self.report.add(problem.help("list the allowed values, or remove `enum`"));
        }
        if let Some(not) = schema.get(Keyword::Not) {
            self.same_instance(not, Scope { composite: true, ..*scope }, &schema.key("not"));
        }
        for keyword in [Keyword::AnyOf, Keyword::OneOf, Keyword::AllOf] {
            self.branches(schema, keyword, scope);
        }
        self.conditional(schema, scope);
    }

    fn branches(&mut self, schema: &SchemaVisit<'s, '_>, keyword: Keyword, scope: &mut Scope) {
        let (is_all, list) = (keyword == Keyword::AllOf, schema.key(keyword.name()));
        let branches = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        for (index, branch) in branches.enumerate() {
            let inner = Scope { composite: scope.composite || !is_all, ..*scope };
            let evaluated = self.same_instance(branch, inner, &list.index(index));
            if is_all {
                scope.evaluated.merge(evaluated);
            } else {
                scope.evaluated.merge_conditional(evaluated);
            }
        }
    }

    fn conditional(&mut self, schema: &SchemaVisit<'s, '_>, scope: &mut Scope) {
        let Some(condition) = schema.get(Keyword::If) else {
            return self.need(schema, &[Keyword::Then, Keyword::Else], "if");
        };
        let (then, otherwise) = (schema.get(Keyword::Then), schema.get(Keyword::Else));
        if then.is_none() && otherwise.is_none() {
            let message = "`if` has no effect without `then` and `else`";
            self.ignored(&schema.key("if"), message, "add `then` or `else`, or remove `if`");
        }
        if then.is_some_and(has_rules) || otherwise.is_some_and(has_rules) {
            let inner = Scope { composite: true, ..*scope };
            scope.evaluated.merge(self.same_instance(condition, inner, &schema.key("if")));
        }
        for (name, clause) in [("then", then), ("else", otherwise)] {
            let Some(clause) = clause else { continue };
            scope.evaluated.merge_conditional(self.same_instance(clause, *scope, &schema.key(name)));
        }
    }

    /// Reports those of `dependents` that are present, because they need the absent keyword `needed`.
    pub(super) fn need(&mut self, schema: &SchemaVisit<'s, '_>, dependents: &[Keyword], needed: &str) {
        for keyword in dependents.iter().filter(|keyword| schema.has(**keyword)) {
            let name = keyword.name();
            let message = format!("`{name}` has no effect without `{needed}`");
            self.ignored(&schema.key(name), message, &format!("add `{needed}`, or remove `{name}`"));
        }
    }

    /// Reports a keyword without effect.
    pub(super) fn ignored(&mut self, at: &Location<'_>, message: impl Into<String>, help: &str) {
        self.report.add(Problem::at_key("schema-ignored-keyword", at, message).help(help));
    }
}

#[cfg(test)]
#[path = "lint_logic_tests.rs"]
mod tests;
