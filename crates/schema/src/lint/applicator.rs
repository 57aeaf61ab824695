//! The keywords that hold for any type: `enum`, the logical combinations and `if`.

use serde_json::Value;

use super::keyword::{Keyword, Node, has_rules};
use super::problem::{Part, Path};
use super::walk::{Linter, Scope};

impl<'s> Linter<'s> {
    pub(super) fn any_group(
        &mut self,
        node: &Node<'s>,
        scope: &mut Scope,
        schema: &'s Value,
        path: &Path<'_>,
    ) {
        self.dynamic(node, scope, schema, path);
        if node.has(Keyword::LegacyId) {
            let message = "`id` is not supported".to_owned();
            let help = Some("did you mean `$id`?".to_owned());
            self.report.add("schema-unknown-keyword", &path.key("id"), Part::Key, message, help);
        }
        if node.has(Keyword::Ref) {
            self.reference(node, scope, path);
        }
        if node.get(Keyword::Enum).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            let message = "`enum` is empty, so nothing is valid".to_owned();
            let help = Some("list the allowed values, or remove `enum`".to_owned());
            self.report.add("schema-empty-enum", &path.key("enum"), Part::Value, message, help);
        }
        if let Some(not) = node.get(Keyword::Not) {
            self.same(not, Scope { composite: true, ..*scope }, &path.key("not"));
        }
        for keyword in [Keyword::AnyOf, Keyword::OneOf, Keyword::AllOf] {
            if let Some(Value::Array(branches)) = node.get(keyword) {
                self.branches(keyword, branches, scope, path);
            }
        }
        self.conditional(node, scope, path);
    }

    fn branches(&mut self, keyword: Keyword, branches: &'s [Value], scope: &mut Scope, path: &Path<'_>) {
        let list = path.key(keyword.name());
        let all = keyword == Keyword::AllOf;
        for (index, branch) in branches.iter().enumerate() {
            let inner = Scope { composite: scope.composite || !all, ..*scope };
            match self.same(branch, inner, &list.index(index)) {
                Some(evaluated) if all => scope.evaluated.merge(evaluated),
                Some(evaluated) => scope.evaluated.merge_if(evaluated),
                None => {}
            }
        }
    }

    fn conditional(&mut self, node: &Node<'s>, scope: &mut Scope, path: &Path<'_>) {
        let (then, otherwise) = (node.get(Keyword::Then), node.get(Keyword::Else));
        let Some(condition) = node.get(Keyword::If) else {
            for keyword in [Keyword::Then, Keyword::Else] {
                if node.has(keyword) {
                    let help = "add `if`, or use `allOf`";
                    self.ignored(
                        &path.key(keyword.name()),
                        format!("`{}` without `if` is ignored", keyword.name()),
                        help,
                    );
                }
            }
            return;
        };
        if then.is_none() && otherwise.is_none() {
            let message = "`if` without `then` and `else` is ignored".to_owned();
            self.ignored(&path.key("if"), message, "add `then` or `else`, or remove `if`");
        }
        if then.is_some_and(has_rules) || otherwise.is_some_and(has_rules) {
            let inner = Scope { composite: true, ..*scope };
            if let Some(evaluated) = self.same(condition, inner, &path.key("if")) {
                scope.evaluated.merge(evaluated);
            }
        }
        for (name, clause) in [("then", then), ("else", otherwise)] {
            if let Some(evaluated) = clause.and_then(|clause| self.same(clause, *scope, &path.key(name))) {
                scope.evaluated.merge_if(evaluated);
            }
        }
    }

    /// A keyword that is there but does nothing.
    pub(super) fn ignored(&mut self, at: &Path<'_>, message: String, help: &str) {
        self.report.add("schema-ignored-keyword", at, Part::Key, message, Some(help.to_owned()));
    }
}

#[cfg(test)]
#[path = "applicator_tests.rs"]
mod tests;
