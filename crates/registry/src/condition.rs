//! Conditions in CEL: read, told in plain words when they cannot be, and searched for the names that they speak of.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use toolwright_contract::suggest::did_you_mean;

/// What a tool's condition may speak of.
pub const NAMES: &[&str] = &["mode", "session", "user", "args", "settings"];

/// A condition that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at column {column}")]
pub struct Unclear {
    pub reason: String,
    /// In characters, from 1; of a condition with several lines, in the line that is meant.
    pub column: usize,
}

/// The names in a condition.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The variables, without those that a macro such as `exists` brings.
    pub variables: BTreeSet<String>,
    /// Members of `args`: of `args.name` and `args["name"]`.
    pub arguments: BTreeSet<String>,
}

/// Reads a condition.
pub fn compile(source: &str) -> Result<Program, Unclear> {
    // The parser is not ours: a panic in it must not take the process along.
    match catch_unwind(|| Program::compile(source)) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(errors)) => {
            let first = errors.errors.iter().min_by_key(|error| error.pos);
            let column = first.map_or(1, |error| usize::try_from(error.pos.1).unwrap_or_default().max(1));
            let reason = first.map_or_else(|| plain(""), |error| plain(&error.msg));
            Err(Unclear { reason, column })
        }
        Err(_) => Err(Unclear { reason: plain(""), column: 1 }),
    }
}

/// What is wrong with the names in a condition: the name, and how to mend it.
pub fn unknown<'a>(names: impl IntoIterator<Item = &'a String>, known: &[&str]) -> Vec<(String, String)> {
    let unknown = names.into_iter().filter(|name| !known.contains(&name.as_str()));
    unknown.map(|name| (name.clone(), did_you_mean(name, known))).collect()
}

/// The names that a condition speaks of.
pub fn names(program: &Program) -> Names {
    let mut found = Names::default();
    walk(program.expression(), &mut Vec::new(), &mut found);
    found
}

/// The parser speaks of its own grammar; this is what its messages mean.
fn plain(message: &str) -> String {
    let quoted = || {
        let (_, rest) = message.split_once('\'')?;
        rest.split_once('\'').map(|(token, _)| token.trim()).filter(|token| !token.is_empty())
    };
    if message.contains("'<EOF>'") {
        return "it ends too early".to_owned();
    }
    if message.contains("reserved identifier") {
        return "it uses a word that CEL keeps for itself".to_owned();
    }
    let is_unexpected =
        ["mismatched input", "extraneous input", "no viable", "token recognition", "unexpected"]
            .iter()
            .any(|words| message.contains(words));
    match quoted() {
        Some(token) if is_unexpected => format!("`{token}` does not belong there"),
        Some(token) if message.contains("missing") || message.contains("expected") => {
            format!("`{token}` is missing")
        }
        _ => "it cannot be understood".to_owned(),
    }
}

fn walk<'e>(expression: &'e IdedExpr, bound: &mut Vec<&'e str>, found: &mut Names) {
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => {}
        Expr::Ident(name) => {
            let name = name.strip_prefix('.').unwrap_or(name);
            if !name.starts_with('@') && !bound.contains(&name) {
                found.variables.insert(name.to_owned());
            }
        }
        Expr::Select(select) => {
            note(&select.operand, &select.field, bound, found);
            walk(&select.operand, bound, found);
        }
        Expr::Call(call) => {
            if let (operators::INDEX, [operand, key]) = (call.func_name.as_str(), call.args.as_slice())
                && let Expr::Literal(LiteralValue::String(key)) = &key.expr
            {
                note(operand, key.inner(), bound, found);
            }
            call.target.iter().for_each(|target| walk(target, bound, found));
            call.args.iter().for_each(|argument| walk(argument, bound, found));
        }
        Expr::List(list) => list.elements.iter().for_each(|element| walk(element, bound, found)),
        Expr::Map(map) => map.entries.iter().for_each(|entry| walk_entry(&entry.expr, bound, found)),
        Expr::Struct(made) => made.entries.iter().for_each(|entry| walk_entry(&entry.expr, bound, found)),
        Expr::Comprehension(comprehension) => {
            walk(&comprehension.iter_range, bound, found);
            walk(&comprehension.accu_init, bound, found);
            let before = bound.len();
            bound.extend([comprehension.iter_var.as_str(), comprehension.accu_var.as_str()]);
            bound.extend(comprehension.iter_var2.as_deref());
            for part in [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result] {
                walk(part, bound, found);
            }
            bound.truncate(before);
        }
    }
}

fn walk_entry<'e>(entry: &'e EntryExpr, bound: &mut Vec<&'e str>, found: &mut Names) {
    match entry {
        EntryExpr::StructField(field) => walk(&field.value, bound, found),
        EntryExpr::MapEntry(entry) => {
            walk(&entry.key, bound, found);
            walk(&entry.value, bound, found);
        }
    }
}

/// Notes a member of `args`.
fn note(operand: &IdedExpr, member: &str, bound: &[&str], found: &mut Names) {
    if matches!(&operand.expr, Expr::Ident(name) if name == "args") && !bound.contains(&"args") {
        found.arguments.insert(member.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str) -> (Vec<String>, Vec<String>) {
        let Names { variables, arguments } = names(&compile(source).unwrap());
        (variables.into_iter().collect(), arguments.into_iter().collect())
    }

    fn of(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_names_of_a_condition_are_found_and_those_of_macros_are_not() {
        assert_eq!(
            told("args.count > 1 && has(args.to) || args[\"cc\"] == mode"),
            (of(&["args", "mode"]), of(&["cc", "count", "to"]))
        );
        assert_eq!(told("args.tags.exists(t, t == user.id)"), (of(&["args", "user"]), of(&["tags"])));
        assert_eq!(told("args.a.b.c == [x, {\"k\": y}]"), (of(&["args", "x", "y"]), of(&["a"])));
    }

    #[test]
    fn what_the_parser_says_is_told_in_plain_words() {
        for (source, expected) in [
            ("1 +", "it ends too early, at column 4"),
            ("args.n > 1 &&", "it ends too early, at column 14"),
            ("(mode == \"text\"", "it ends too early, at column 16"),
            ("mode = \"text\"", "`=` does not belong there, at column 6"),
            ("mode == )", "`)` does not belong there, at column 9"),
            ("args.n > 1)", "`)` does not belong there, at column 11"),
        ] {
            assert_eq!(compile(source).unwrap_err().to_string(), expected, "{source}");
        }
        for source in ["", "@", "mode == 'text", "a b", "\u{0}", "if", "for == 1", "x y z", "1.2.3"] {
            let told = compile(source).map(|_| ()).unwrap_err().to_string();
            assert!(
                !told.contains("Syntax") && !told.contains("NUM_") && !told.contains("EOF"),
                "{source}: {told}"
            );
        }
    }
}
