//! Types of conditions: finds comparisons that are never true, and members that a value cannot have, before a call
//! does. A type that is not known is compatible with every other.

use cel::Program;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::Value;
use toolwright_contract::suggest::did_you_mean;

#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    Unknown,
    Null,
    Bool,
    Number,
    Text,
    List(Box<Type>),
    /// Named members. One that has others too is not `is_closed`.
    Object {
        members: Vec<(String, Type)>,
        is_closed: bool,
    },
}

impl Type {
    fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    fn closed<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object { members: members.map(|(name, of)| (name.to_owned(), of)).into(), is_closed: true }
    }

    const fn any_object() -> Self {
        Self::Object { members: Vec::new(), is_closed: false }
    }

    /// The type of the values that a JSON Schema allows.
    pub fn of_schema(schema: &Value) -> Self {
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => Self::Text,
            Some("integer" | "number") => Self::Number,
            Some("boolean") => Self::Bool,
            Some("null") => Self::Null,
            Some("array") => Self::list(schema.get("items").map_or(Self::Unknown, Self::of_schema)),
            Some("object") => Self::of_parameters(schema),
            _ => Self::Unknown,
        }
    }

    /// The type of `args`: its unknown members are reported elsewhere.
    fn of_parameters(schema: &Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let members = properties.map(|(name, schema)| (name.clone(), Self::of_schema(schema))).collect();
        Self::Object { members, is_closed: false }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "a value",
            Self::Null => "null",
            Self::Bool => "a truth value",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Object { .. } => "an object",
        }
    }

    fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => true,
            (Self::List(one), Self::List(other)) => one.may_equal(other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn may_be(&self, wanted: &[Self]) -> bool {
        *self == Self::Unknown || wanted.iter().any(|wanted| self.may_equal(wanted))
    }
}

/// The variables of a condition. `parameters` is the schema of the tool's arguments; a rule of the configuration
/// applies to all tools.
pub fn variables(parameters: Option<&Value>) -> Vec<(&'static str, Type)> {
    let session = Type::closed([
        ("id", Type::Text),
        ("clientId", Type::Text),
        ("turn", Type::Number),
        ("mode", Type::Text),
        ("state", Type::Unknown),
    ]);
    let user = Type::closed([("id", Type::Text), ("org", Type::Unknown), ("roles", Type::list(Type::Text))]);
    let args = parameters.map_or_else(Type::any_object, Type::of_parameters);
    vec![
        ("tool", Type::Text),
        ("mode", Type::Text),
        ("session", session),
        ("user", user),
        ("args", args),
        ("settings", Type::any_object()),
    ]
}

/// The type errors of a condition, each as a clause: "`tool` is a string, which has no member `toolId`".
pub fn type_errors(program: &Program, variables: Vec<(&'static str, Type)>) -> Vec<String> {
    let scope = variables.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    let mut checker = Checker { scope, errors: Vec::new() };
    let result = checker.infer(program.expression());
    if !result.may_be(&[Type::Bool]) {
        checker.errors.push(format!("it is {}, and a condition is true or false", result.name()));
    }
    checker.errors.dedup();
    checker.errors
}

struct Checker {
    /// Later bindings hide earlier ones.
    scope: Vec<(String, Type)>,
    errors: Vec<String>,
}

impl Checker {
    fn infer(&mut self, expression: &IdedExpr) -> Type {
        match &expression.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Type::Number,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::Null => Type::Null,
                LiteralValue::Bytes(_) => Type::Unknown,
            },
            Expr::Ident(name) => {
                let found = self.scope.iter().rev().find(|(known, _)| known == name);
                found.map_or(Type::Unknown, |(_, of)| of.clone())
            }
            Expr::Select(select) => {
                let of = self.infer(&select.operand);
                let member = self.member(&select.operand, &of, &select.field);
                if select.test { Type::Bool } else { member }
            }
            Expr::Call(call) => self.call(&call.func_name, call.target.as_deref(), &call.args),
            Expr::List(list) => {
                let mut items = list.elements.iter().map(|element| self.infer(element)).collect::<Vec<_>>();
                let first = items.pop().unwrap_or(Type::Unknown);
                Type::list(if items.iter().all(|item| *item == first) { first } else { Type::Unknown })
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.infer(&entry.value);
                    }
                }
                Type::any_object()
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Type::Unknown,
        }
    }

    fn member(&mut self, operand: &IdedExpr, of: &Type, name: &str) -> Type {
        match of {
            Type::Unknown => Type::Unknown,
            Type::Object { members, is_closed } => {
                if let Some((_, of)) = members.iter().find(|(known, _)| known == name) {
                    return of.clone();
                }
                if *is_closed {
                    let known: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                    let help = did_you_mean(name, &known);
                    self.errors.push(format!("{} has no member `{name}`: {help}", text(operand)));
                }
                Type::Unknown
            }
            other => {
                self.errors.push(format!(
                    "{} is {}, which has no member `{name}`",
                    text(operand),
                    other.name()
                ));
                Type::Unknown
            }
        }
    }

    fn call(&mut self, function: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) -> Type {
        match (function, target, args) {
            (
                operators::EQUALS
                | operators::NOT_EQUALS
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                None,
                [left, right],
            ) => self.comparison(function, left, right),
            (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT, None, args) => {
                args.iter().for_each(|operand| _ = self.expect(operand, &[Type::Bool]));
                Type::Bool
            }
            (operators::CONDITIONAL, None, [condition, yes, no]) => {
                self.expect(condition, &[Type::Bool]);
                let (yes, no) = (self.infer(yes), self.infer(no));
                if yes == no { yes } else { Type::Unknown }
            }
            (operators::IN, None, [item, list]) => {
                self.contains(item, list);
                Type::Bool
            }
            (operators::INDEX, None, [operand, key]) => self.index(operand, key),
            (operators::ADD, None, [left, right]) => {
                let (one, other) = (self.infer(left), self.infer(right));
                if !one.may_equal(&other) {
                    self.mismatch("cannot be added", left, &one, right, &other);
                }
                if one == Type::Unknown { other } else { one }
            }
            (
                operators::SUBSTRACT
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::MODULO
                | operators::NEGATE,
                None,
                args,
            ) => {
                args.iter().for_each(|operand| _ = self.expect(operand, &[Type::Number]));
                // Times can be subtracted, and their types are not known.
                Type::Unknown
            }
            _ => self.function(function, target, args),
        }
    }

    fn comparison(&mut self, operator: &str, left: &IdedExpr, right: &IdedExpr) -> Type {
        let (one, other) = (self.infer(left), self.infer(right));
        let is_equality = matches!(operator, operators::EQUALS | operators::NOT_EQUALS);
        if is_equality && !one.may_equal(&other) {
            self.mismatch("are never equal", left, &one, right, &other);
        }
        if !is_equality && (!one.may_equal(&other) || !one.may_be(&[Type::Number, Type::Text])) {
            self.mismatch("cannot be compared", left, &one, right, &other);
        }
        Type::Bool
    }

    /// A named function, as `f(x)` or `x.f()`.
    fn function(&mut self, function: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) -> Type {
        match (function, target, args) {
            ("contains" | "startsWith" | "endsWith" | "matches", Some(target), [argument]) => {
                self.expect(target, &[Type::Text]);
                self.expect(argument, &[Type::Text]);
                Type::Bool
            }
            ("mentions", None, [text, words]) => {
                self.expect(text, &[Type::Text]);
                self.expect(words, &[Type::list(Type::Unknown)]);
                Type::Bool
            }
            ("size", Some(operand), []) | ("size", None, [operand]) => {
                self.expect(operand, &[Type::Text, Type::list(Type::Unknown), Type::any_object()]);
                Type::Number
            }
            _ => {
                target.into_iter().chain(args).for_each(|operand| _ = self.infer(operand));
                match function {
                    "string" => Type::Text,
                    "int" | "uint" | "double" => Type::Number,
                    "bool" => Type::Bool,
                    _ => Type::Unknown,
                }
            }
        }
    }

    fn contains(&mut self, item: &IdedExpr, list: &IdedExpr) {
        let (one, of) = (self.infer(item), self.infer(list));
        let needed = match &of {
            Type::List(of) => (**of).clone(),
            Type::Object { .. } => Type::Text,
            Type::Unknown => return,
            other => {
                self.errors.push(format!(
                    "{} is {}; `in` needs a list or an object",
                    text(list),
                    other.name()
                ));
                return;
            }
        };
        if !one.may_equal(&needed) {
            self.mismatch("are never equal", item, &one, list, &needed);
        }
    }

    fn index(&mut self, operand: &IdedExpr, key: &IdedExpr) -> Type {
        let (of, by) = (self.infer(operand), self.infer(key));
        match (&of, &key.expr) {
            (Type::List(item), _) if by.may_be(&[Type::Number]) => (**item).clone(),
            (Type::Object { .. }, Expr::Literal(LiteralValue::String(name))) => {
                self.member(operand, &of, name.inner())
            }
            (Type::Unknown | Type::Object { .. }, _) => Type::Unknown,
            _ => {
                self.errors.push(format!(
                    "{} is {}, which has no item {}",
                    text(operand),
                    of.name(),
                    text(key)
                ));
                Type::Unknown
            }
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Type {
        let item = match self.infer(&comprehension.iter_range) {
            Type::List(item) => *item,
            Type::Object { .. } => Type::Text,
            Type::Unknown => Type::Unknown,
            other => {
                let range = text(&comprehension.iter_range);
                self.errors.push(format!("{range} is {}, which has no items", other.name()));
                Type::Unknown
            }
        };
        let result = match self.infer(&comprehension.accu_init) {
            Type::List(_) => Type::list(Type::Unknown),
            other => other,
        };
        let before = self.scope.len();
        self.scope.push((comprehension.iter_var.clone(), item));
        self.scope.extend(comprehension.iter_var2.iter().map(|name| (name.clone(), Type::Unknown)));
        self.scope.push((comprehension.accu_var.clone(), result));
        self.infer(&comprehension.loop_cond);
        self.infer(&comprehension.loop_step);
        let result = self.infer(&comprehension.result);
        self.scope.truncate(before);
        result
    }

    fn expect(&mut self, operand: &IdedExpr, wanted: &[Type]) -> Type {
        let of = self.infer(operand);
        if !of.may_be(wanted) {
            let wanted: Vec<&str> = wanted.iter().map(Type::name).collect();
            self.errors.push(format!("{} is {}, not {}", text(operand), of.name(), wanted.join(" or ")));
        }
        of
    }

    fn mismatch(&mut self, problem: &str, left: &IdedExpr, one: &Type, right: &IdedExpr, other: &Type) {
        let (left, right) = (text(left), text(right));
        self.errors.push(format!("{left} ({}) and {right} ({}) {problem}", one.name(), other.name()));
    }
}

/// An expression as a message names it.
fn text(expression: &IdedExpr) -> String {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => format!("{:?}", text.inner()),
        Expr::Literal(LiteralValue::Int(number)) => number.inner().to_string(),
        Expr::Literal(_) => "a constant".to_owned(),
        _ => path(expression).map_or("an expression".to_owned(), |path| format!("`{path}`")),
    }
}

fn path(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) if !name.starts_with('@') => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", path(&select.operand)?, select.field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::condition::compile;

    fn errors(source: &str) -> Vec<String> {
        let parameters = json!({ "type": "object", "properties": {
            "amount": { "type": "integer" }, "to": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } },
            "any": {}, "deep": { "type": "object", "properties": { "on": { "type": "boolean" } } }
        } });
        type_errors(&compile(source).unwrap(), variables(Some(&parameters)))
    }

    #[test]
    fn a_condition_that_can_never_hold_is_an_error() {
        for (source, expected) in [
            ("tool.toolId == 'pay'", "`tool` is a string, which has no member `toolId`"),
            ("tool == 3", "`tool` (a string) and 3 (a number) are never equal"),
            ("mode == null", "`mode` (a string) and a constant (null) are never equal"),
            ("user.role == 'x'", "`user` has no member `role`: did you mean `roles`?"),
            ("has(session.client)", "`session` has no member `client`"),
            ("'staff' in user.org && 'a' in mode", "`mode` is a string; `in` needs a list or an object"),
            ("3 in user.roles", "3 (a number) and `user.roles` (a string) are never equal"),
            ("user.roles == 'staff'", "`user.roles` (a list) and \"staff\" (a string) are never equal"),
            ("args.amount > '10'", "`args.amount` (a number) and \"10\" (a string) cannot be compared"),
            ("args.to", "it is a string, and a condition is true or false"),
            ("args.amount && true", "`args.amount` is a number, not a truth value"),
            ("args.deep.on == 1", "`args.deep.on` (a truth value) and 1 (a number) are never equal"),
            ("args.tags.exists(tag, tag == 1)", "`tag` (a string) and 1 (a number) are never equal"),
            ("args.amount.contains('1')", "`args.amount` is a number, not a string"),
            ("mentions(args.amount, settings.words)", "`args.amount` is a number, not a string"),
            ("session.turn.exists(x, true)", "`session.turn` is a number, which has no items"),
            ("args.tags[0] == 1", "are never equal"),
            ("args.amount + 'x' == 'y'", "cannot be added"),
        ] {
            let found = errors(source);
            assert!(found.iter().any(|error| error.contains(expected)), "{source}: {found:?}");
        }
    }

    #[test]
    fn a_condition_that_may_hold_has_no_errors() {
        for source in [
            "true",
            "tool == 'pay' && mode != \"voice\"",
            "args.amount < 10.5 && args.amount + 1 > 2 && -args.amount < 3",
            "\"staff\" in user.roles && user.org == \"studio\" && user.org != null",
            "user.roles.exists(role, role == 'operator') || user.roles.all(r, r.startsWith('a'))",
            "user.roles.filter(r, r != 'x').size() == 2 && size(args.to) > 3",
            "args.any.deep[3].x == 1 && args['to'] == 'x' && has(args.deep.on)",
            "session.state.step == 2 && settings.limit > args.amount",
            "mentions(args.to, settings.words) ? args.deep.on : false",
            "session.clientId == 'robot' && args.unknown == 1 && 'to' in args",
            "args.tags == ['a'] && args.tags.exists_one(t, t == 'x') && args.tags.map(t, t + 'x') != []",
            "timestamp('2026-01-01T00:00:00Z') < timestamp(args.to)",
        ] {
            assert_eq!(errors(source), Vec::<String>::new(), "{source}");
        }
    }
}
