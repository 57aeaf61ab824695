//! Collects the top level of a syntax tree into a `Module`: imports and bindings here, exports in `exports`.

use super::module::{Binding, Local, Module, Name, Request, Value};
use super::parse::range;
use super::specifier::Target;
use super::value::{value_of_expression, value_of_function};
use super::{early, exports};
use oxc_ast::ast::{
    BindingIdentifier, BindingPattern, Declaration, ImportDeclaration, ImportDeclarationSpecifier, Program,
    Statement, StringLiteral, VariableDeclaration, WithClause,
};
use oxc_span::GetSpan;
use std::ops::Range;

pub(super) fn collect(program: &Program, source: &str, module: &mut Module) {
    for statement in &program.body {
        if let Some(declaration) = statement.as_declaration() {
            collect_declaration(declaration, module);
        } else {
            collect_module_statement(statement, module);
        }
    }
    module.index();
    early::check(source, module);
}

fn collect_module_statement(statement: &Statement, module: &mut Module) {
    match statement {
        Statement::ImportDeclaration(import) => collect_import(import, module),
        Statement::ExportDeclaration(export) => exports::collect_declared(export, module),
        Statement::ExportNamedDeclaration(export) => exports::collect_named(export, module),
        Statement::ExportFromDeclaration(export) => exports::collect_from(export, module),
        Statement::ExportAllDeclaration(export) => exports::collect_all(export, module),
        Statement::ExportDefaultDeclaration(export) => exports::collect_default(export, module),
        _ => {}
    }
}

pub(super) fn collect_declaration(declaration: &Declaration, module: &mut Module) {
    match declaration {
        Declaration::VariableDeclaration(variables) => collect_variables(variables, module),
        Declaration::FunctionDeclaration(function) => {
            if let Some(id) = &function.id {
                let value = value_of_function(function);
                module.locals.push(local(id, value, Binding::Lexical));
            }
        }
        Declaration::ClassDeclaration(class) => {
            if let Some(id) = &class.id {
                let value = Value::NotFunction { what: "a class", span: range(class.span) };
                module.locals.push(local(id, value, Binding::Lexical));
            }
        }
        _ => {}
    }
}

fn collect_variables(variables: &VariableDeclaration, module: &mut Module) {
    let binding = if variables.kind.is_var() { Binding::Var } else { Binding::Lexical };
    for variable in &variables.declarations {
        let BindingPattern::BindingIdentifier(id) = &variable.id else {
            for id in variable.id.get_binding_identifiers() {
                module.locals.push(local(id, Value::Unknown, binding));
            }
            continue;
        };
        let value = match &variable.init {
            Some(init) => value_of_expression(init),
            None => Value::NotFunction { what: "a variable without a value", span: range(id.span) },
        };
        let value = match value {
            Value::NotFunction { what, span } if !variables.kind.is_const() => {
                let assignments = usize::from(variable.init.is_some());
                Value::Variable { name: id.name.to_string(), assignments, what, span }
            }
            value => value,
        };
        module.locals.push(local(id, value, binding));
    }
}

fn collect_import(import: &ImportDeclaration, module: &mut Module) {
    let request = module.requests.len();
    let mut names = Vec::new();
    for specifier in import.specifiers.iter().flatten() {
        let (local, wanted) = match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(specifier) => {
                let text = specifier.imported.name().to_string();
                (&specifier.local, Some(Name { text, span: range(specifier.imported.span()) }))
            }
            ImportDeclarationSpecifier::ImportDefaultSpecifier(specifier) => {
                let text = "default".to_owned();
                (&specifier.local, Some(Name { text, span: range(specifier.span) }))
            }
            ImportDeclarationSpecifier::ImportNamespaceSpecifier(specifier) => (&specifier.local, None),
        };
        let value = match &wanted {
            Some(name) => Value::Imported { request, name: name.text.clone() },
            None => Value::Namespace,
        };
        module.locals.push(self::local(local, value, Binding::Lexical));
        names.extend(wanted);
    }
    let phase = import.phase.map(|_| range(import.span).start..range(import.source.span).start);
    let attributes = attributes(&import.with_clause).or(phase);
    module.requests.push(request_for(&import.source, names, attributes));
}

pub(super) fn local(id: &BindingIdentifier, value: Value, binding: Binding) -> Local {
    Local { name: id.name.to_string(), span: range(id.span), value, binding }
}

pub(super) fn attributes<'a, C: std::ops::Deref<Target = WithClause<'a>>>(
    clause: &Option<C>,
) -> Option<Range<usize>> {
    clause.as_ref().map(|clause| range(clause.span))
}

pub(super) fn request_for(
    source: &StringLiteral,
    names: Vec<Name>,
    attributes: Option<Range<usize>>,
) -> Request {
    let specifier = source.value.to_string();
    Request { specifier, span: range(source.span), names, attributes, target: Target::Unknown }
}
