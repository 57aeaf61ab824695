//! Conditions in CEL: compiled, with readable syntax errors, and searched for the names that they use.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use toolwright_contract::suggest::did_you_mean;

/// The variables of a tool's condition.
pub const NAMES: &[&str] = &["mode", "session", "user", "args", "settings"];

/// A condition that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at column {column}")]
pub struct SyntaxError {
    pub reason: String,
    /// In characters, from 1, within its line.
    pub column: usize,
}

/// The names in a condition.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The variables, without those that a macro such as `exists` binds.
    pub variables: BTreeSet<String>,
    /// Members of `args`, as in `args.name` and `args["name"]`.
    pub arguments: BTreeSet<String>,
}

/// Compiles a condition.
pub fn compile(source: &str) -> Result<Program, SyntaxError> {
    // A panic of the parser must not end the process.
    match catch_unwind(|| Program::compile(source)) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(errors)) => {
            let first = errors.errors.iter().min_by_key(|error| error.pos);
            let column = first.map_or(1, |error| usize::try_from(error.pos.1).unwrap_or_default().max(1));
            let reason = first.map_or_else(|| readable_reason(""), |error| readable_reason(&error.msg));
            Err(SyntaxError { reason, column })
        }
        Err(_) => Err(SyntaxError { reason: readable_reason(""), column: 1 }),
    }
}

/// The names that are not in `known`, each with a suggestion.
pub fn unknown_names<'a>(
    names: impl IntoIterator<Item = &'a String>,
    known: &[&str],
) -> Vec<(String, String)> {
    let unknown = names.into_iter().filter(|name| !known.contains(&name.as_str()));
    unknown.map(|name| (name.clone(), did_you_mean(name, known))).collect()
}

/// The names that a condition uses.
pub fn names(program: &Program) -> Names {
    let mut found = Names::default();
    collect_names(program.expression(), &mut Vec::new(), &mut found);
    found
}

/// Rewrites a message of the parser, which is in terms of its grammar.
fn readable_reason(message: &str) -> String {
    let quoted = || {
        let (_, rest) = message.split_once('\'')?;
        rest.split_once('\'').map(|(token, _)| token.trim()).filter(|token| !token.is_empty())
    };
    if message.contains("'<EOF>'") {
        return "it ends too early".to_owned();
    }
    if message.contains("reserved identifier") {
        return "it uses a reserved word of CEL".to_owned();
    }
    let is_unexpected =
        ["mismatched input", "extraneous input", "no viable", "token recognition", "unexpected"]
            .iter()
            .any(|words| message.contains(words));
    match quoted() {
        Some(token) if is_unexpected => format!("`{token}` is not expected there"),
        Some(token) if message.contains("missing") || message.contains("expected") => {
            format!("`{token}` is missing")
        }
        _ => "it cannot be parsed".to_owned(),
    }
}

fn collect_names<'e>(expression: &'e IdedExpr, bound: &mut Vec<&'e str>, found: &mut Names) {
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => {}
        Expr::Ident(name) => {
            let name = name.strip_prefix('.').unwrap_or(name);
            if !name.starts_with('@') && !bound.contains(&name) {
                found.variables.insert(name.to_owned());
            }
        }
        Expr::Select(select) => {
            add_argument(&select.operand, &select.field, bound, found);
            collect_names(&select.operand, bound, found);
        }
        Expr::Call(call) => {
            if let (operators::INDEX, [operand, key]) = (call.func_name.as_str(), call.args.as_slice())
                && let Expr::Literal(LiteralValue::String(key)) = &key.expr
            {
                add_argument(operand, key.inner(), bound, found);
            }
            call.target.iter().for_each(|target| collect_names(target, bound, found));
            call.args.iter().for_each(|argument| collect_names(argument, bound, found));
        }
        Expr::List(list) => list.elements.iter().for_each(|element| collect_names(element, bound, found)),
        Expr::Map(map) => map.entries.iter().for_each(|entry| walk_entry(&entry.expr, bound, found)),
        Expr::Struct(structure) => {
            structure.entries.iter().for_each(|entry| walk_entry(&entry.expr, bound, found))
        }
        Expr::Comprehension(comprehension) => {
            collect_names(&comprehension.iter_range, bound, found);
            collect_names(&comprehension.accu_init, bound, found);
            let before = bound.len();
            bound.extend([comprehension.iter_var.as_str(), comprehension.accu_var.as_str()]);
            bound.extend(comprehension.iter_var2.as_deref());
            for part in [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result] {
                collect_names(part, bound, found);
            }
            bound.truncate(before);
        }
    }
}

fn walk_entry<'e>(entry: &'e EntryExpr, bound: &mut Vec<&'e str>, found: &mut Names) {
    match entry {
        EntryExpr::StructField(field) => collect_names(&field.value, bound, found),
        EntryExpr::MapEntry(entry) => {
            collect_names(&entry.key, bound, found);
            collect_names(&entry.value, bound, found);
        }
    }
}

/// Adds a member of `args`.
fn add_argument(operand: &IdedExpr, member: &str, bound: &[&str], found: &mut Names) {
    if matches!(&operand.expr, Expr::Ident(name) if name == "args") && !bound.contains(&"args") {
        found.arguments.insert(member.to_owned());
    }
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
