//! Collects the top level of a syntax tree into a `Module`: its bindings, imports and exports, and their values as far
//! as the syntax shows them.

use super::module::{Binding, Local, Module, Name, Request, Value};
use super::parse_module::range;
use super::specifier::Target;
use oxc_ast::ast::{
    AssignmentOperator, BindingIdentifier, BindingPattern, Class, Declaration, ExportDefaultDeclaration,
    ExportDefaultDeclarationKind, Expression, Function, ImportDeclaration, ImportDeclarationSpecifier,
    ModuleExportName, Program, Statement, StringLiteral, VariableDeclaration, WithClause,
};
use oxc_span::GetSpan;
use std::ops::Range;

pub(super) fn collect(program: &Program, source: &str, module: &mut Module) {
    for statement in &program.body {
        match statement.as_declaration() {
            Some(declaration) => declared(declaration).into_iter().for_each(|local| module.add_local(local)),
            None => collect_module_statement(statement, module),
        }
    }
    // A `var` inside a block is visible at the top level too, and is not collected.
    if !source.contains("var ") {
        module.check_exports();
    }
}

fn collect_module_statement(statement: &Statement, module: &mut Module) {
    match statement {
        Statement::ImportDeclaration(import) => collect_import(import, module),
        Statement::ExportDeclaration(export) => {
            for local in declared(&export.declaration) {
                module.add_export(local.name.clone(), local.span.clone(), local.value.clone());
                module.add_local(local);
            }
        }
        Statement::ExportNamedDeclaration(export) => {
            for specifier in &export.specifiers {
                let value = Value::Local(specifier.local.name().to_string());
                add_export(&specifier.exported, value, module);
            }
        }
        Statement::ExportFromDeclaration(export) => {
            let mut names = Vec::new();
            for specifier in &export.specifiers {
                let name = name_of(&specifier.local);
                let value = Value::Imported { request: module.requests.len(), name: name.text.clone() };
                names.push(name);
                add_export(&specifier.exported, value, module);
            }
            add_request(&export.source, names, attributes(&export.with_clause), module);
        }
        Statement::ExportAllDeclaration(export) => {
            match &export.exported {
                Some(name) => add_export(name, Value::NAMESPACE, module),
                None => module.stars.push(module.requests.len()),
            }
            add_request(&export.source, Vec::new(), attributes(&export.with_clause), module);
        }
        Statement::ExportDefaultDeclaration(export) => collect_default(export, module),
        _ => {}
    }
}

/// The bindings of a declaration.
fn declared(declaration: &Declaration) -> Vec<Local> {
    let named = |id: &Option<BindingIdentifier>, value| {
        id.iter().map(|id| local(id, Value::clone(&value), Binding::Lexical)).collect()
    };
    match declaration {
        Declaration::VariableDeclaration(variables) => variable_locals(variables),
        Declaration::FunctionDeclaration(function) => named(&function.id, value_of_function(function)),
        Declaration::ClassDeclaration(class) => named(&class.id, value_of_class(class)),
        _ => Vec::new(),
    }
}

fn variable_locals(variables: &VariableDeclaration) -> Vec<Local> {
    let binding = if variables.kind.is_var() { Binding::Var } else { Binding::Lexical };
    let mut locals = Vec::new();
    for variable in &variables.declarations {
        let BindingPattern::BindingIdentifier(id) = &variable.id else {
            let ids = variable.id.get_binding_identifiers();
            locals.extend(ids.into_iter().map(|id| local(id, Value::Unknown, binding)));
            continue;
        };
        let value = match &variable.init {
            Some(init) => value_of_expression(init),
            None => Value::NotFunction { what: "a variable without a value", span: Some(range(id.span)) },
        };
        let value = match value {
            Value::NotFunction { what, span: Some(span) } if !variables.kind.is_const() => {
                let assignments = usize::from(variable.init.is_some());
                Value::Variable { name: id.name.to_string(), assignments, what, span }
            }
            value => value,
        };
        locals.push(local(id, value, binding));
    }
    locals
}

fn collect_import(import: &ImportDeclaration, module: &mut Module) {
    let request = module.requests.len();
    let mut names = Vec::new();
    for specifier in import.specifiers.iter().flatten() {
        let (id, wanted) = match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(specifier) => {
                (&specifier.local, Some(name_of(&specifier.imported)))
            }
            ImportDeclarationSpecifier::ImportDefaultSpecifier(specifier) => {
                let text = "default".to_owned();
                (&specifier.local, Some(Name { text, span: range(specifier.span) }))
            }
            ImportDeclarationSpecifier::ImportNamespaceSpecifier(specifier) => (&specifier.local, None),
        };
        let value = match &wanted {
            Some(name) => Value::Imported { request, name: name.text.clone() },
            None => Value::NAMESPACE,
        };
        module.add_local(local(id, value, Binding::Lexical));
        names.extend(wanted);
    }
    let phase = import.phase.map(|_| range(import.span).start..range(import.source.span).start);
    add_request(&import.source, names, attributes(&import.with_clause).or(phase), module);
}

fn collect_default(export: &ExportDefaultDeclaration, module: &mut Module) {
    let (id, value) = match &export.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
            (function.id.as_ref(), value_of_function(function))
        }
        ExportDefaultDeclarationKind::ClassDeclaration(class) => (class.id.as_ref(), value_of_class(class)),
        other => (None, other.as_expression().map_or(Value::Unknown, value_of_expression)),
    };
    if let Some(id) = id {
        module.add_local(local(id, value.clone(), Binding::Lexical));
    }
    // A diagnostic points at the keywords, not at the whole body.
    let start = export.span.start as usize;
    let span = start..start + "export default".len().min(export.span.size() as usize);
    module.add_export("default".to_owned(), span, value);
}

fn local(id: &BindingIdentifier, value: Value, binding: Binding) -> Local {
    Local { name: id.name.to_string(), span: range(id.span), value, binding }
}

fn name_of(name: &ModuleExportName) -> Name {
    Name { text: name.name().to_string(), span: range(name.span()) }
}

fn add_export(name: &ModuleExportName, value: Value, module: &mut Module) {
    let Name { text, span } = name_of(name);
    module.add_export(text, span, value);
}

fn attributes<'a, C: std::ops::Deref<Target = WithClause<'a>>>(clause: &Option<C>) -> Option<Range<usize>> {
    clause.as_ref().map(|clause| range(clause.span))
}

fn add_request(
    source: &StringLiteral,
    names: Vec<Name>,
    attributes: Option<Range<usize>>,
    module: &mut Module,
) {
    let (specifier, span) = (source.value.to_string(), range(source.span));
    module.requests.push(Request { specifier, span, names, attributes, target: Target::Unknown });
}

fn value_of_class(class: &Class) -> Value {
    Value::NotFunction { what: "a class", span: Some(range(class.span)) }
}

fn value_of_function(function: &Function) -> Value {
    match function.generator {
        // Calling it returns an iterator, never an envelope.
        true => Value::NotFunction { what: "a generator function", span: Some(range(function.span)) },
        false => Value::Function,
    }
}

fn value_of_expression(mut expression: &Expression) -> Value {
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
        Expression::Identifier(name) if name.name != "undefined" => Value::Local(name.name.to_string()),
        other => match constant_kind(other) {
            Some(what) => Value::NotFunction { what, span: Some(range(other.span())) },
            None => Value::Unknown,
        },
    }
}

/// The kind of a value that can never be called.
fn constant_kind(expression: &Expression) -> Option<&'static str> {
    Some(match expression {
        Expression::Identifier(name) if name.name == "undefined" => "`undefined`",
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
