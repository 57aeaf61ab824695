//! Collects the forms of `export` into a `Module`.

use super::collect::{attributes, collect_declaration, local, request_for};
use super::module::{Binding, Export, Module, Name, Value};
use super::parse::range;
use super::value::{value_of_expression, value_of_function};
use oxc_ast::ast::{
    ExportAllDeclaration, ExportDeclaration, ExportDefaultDeclaration, ExportDefaultDeclarationKind,
    ExportFromDeclaration, ExportNamedDeclaration, ModuleExportName,
};
use oxc_span::GetSpan;

/// `export const …`, `export function …`, `export class …`
pub(super) fn collect_declared(export: &ExportDeclaration, module: &mut Module) {
    let first = module.locals.len();
    collect_declaration(&export.declaration, module);
    let exports = module.locals[first..].iter().map(|local| {
        let (name, span, value) = (local.name.clone(), local.span.clone(), local.value.clone());
        Export { name, span, value }
    });
    module.exports.extend(exports);
}

/// `export { a, b as c }`
pub(super) fn collect_named(export: &ExportNamedDeclaration, module: &mut Module) {
    for specifier in &export.specifiers {
        let value = Value::Local(specifier.local.name().to_string());
        module.exports.push(exported(&specifier.exported, value));
    }
}

/// `export { a, b as c } from '…'`
pub(super) fn collect_from(export: &ExportFromDeclaration, module: &mut Module) {
    let request = module.requests.len();
    let mut names = Vec::new();
    for specifier in &export.specifiers {
        let (name, span) = (specifier.local.name().to_string(), range(specifier.local.span()));
        let value = Value::Imported { request, name: name.clone() };
        names.push(Name { text: name, span });
        module.exports.push(exported(&specifier.exported, value));
    }
    let request = request_for(&export.source, names, attributes(&export.with_clause));
    module.requests.push(request);
}

/// `export * from '…'`, `export * as a from '…'`
pub(super) fn collect_all(export: &ExportAllDeclaration, module: &mut Module) {
    match &export.exported {
        Some(name) => module.exports.push(exported(name, Value::Namespace)),
        None => module.stars.push(module.requests.len()),
    }
    let request = request_for(&export.source, Vec::new(), attributes(&export.with_clause));
    module.requests.push(request);
}

/// `export default …`
pub(super) fn collect_default(export: &ExportDefaultDeclaration, module: &mut Module) {
    let (id, value) = match &export.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
            (function.id.as_ref(), value_of_function(function))
        }
        ExportDefaultDeclarationKind::ClassDeclaration(class) => {
            (class.id.as_ref(), Value::NotFunction { what: "a class", span: range(class.span) })
        }
        other => (None, other.as_expression().map_or(Value::Unknown, value_of_expression)),
    };
    if let Some(id) = id {
        module.locals.push(local(id, value.clone(), Binding::Lexical));
    }
    // A diagnostic points at the keywords, not at the whole body.
    let start = export.span.start as usize;
    let span = start..start + "export default".len().min(export.span.size() as usize);
    module.exports.push(Export { name: "default".to_owned(), span, value });
}

fn exported(name: &ModuleExportName, value: Value) -> Export {
    Export { name: name.name().to_string(), span: range(name.span()), value }
}
