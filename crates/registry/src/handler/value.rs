//! The value of an expression, as far as the syntax shows it.

use super::module::Value;
use super::parse::range;
use oxc_ast::ast::{AssignmentOperator, Expression, Function};
use oxc_span::GetSpan;

pub(super) fn value_of_function(function: &Function) -> Value {
    if function.generator {
        // Calling it returns an iterator, never an envelope.
        return Value::NotFunction { what: "a generator function", span: range(function.span) };
    }
    Value::Function
}

pub(super) fn value_of_expression(expression: &Expression) -> Value {
    let mut expression = expression;
    // A loop, not recursion: `a = b = c = …` can be long.
    loop {
        expression = match expression {
            Expression::SequenceExpression(sequence) => match sequence.expressions.last() {
                Some(last) => last,
                None => return Value::Unknown,
            },
            Expression::AssignmentExpression(assignment)
                if assignment.operator == AssignmentOperator::Assign =>
            {
                &assignment.right
            }
            Expression::ParenthesizedExpression(inner) => &inner.expression,
            _ => break,
        }
    }
    match expression {
        Expression::ArrowFunctionExpression(_) => Value::Function,
        Expression::FunctionExpression(function) => value_of_function(function),
        Expression::Identifier(name) if name.name == "undefined" => {
            Value::NotFunction { what: "`undefined`", span: range(name.span) }
        }
        Expression::Identifier(name) => Value::Local(name.name.to_string()),
        other => match constant_kind(other) {
            Some(what) => Value::NotFunction { what, span: range(other.span()) },
            None => Value::Unknown,
        },
    }
}

/// The kind of a value that can never be called.
fn constant_kind(expression: &Expression) -> Option<&'static str> {
    Some(match expression {
        Expression::BooleanLiteral(_) => "a boolean",
        Expression::NullLiteral(_) => "`null`",
        Expression::NumericLiteral(_) | Expression::BigIntLiteral(_) => "a number",
        Expression::RegExpLiteral(_) => "a regular expression",
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => "a string",
        Expression::ObjectExpression(_) => "an object",
        Expression::ArrayExpression(_) => "an array",
        Expression::ClassExpression(_) => "a class",
        Expression::UnaryExpression(_)
        | Expression::UpdateExpression(_)
        | Expression::BinaryExpression(_) => "the result of an operator",
        _ => return None,
    })
}
