//! Early errors of a module's top level that the parser does not report. Those inside of functions appear when the
//! engine loads the module.

use super::error;
use super::module::{Export, Module, Value};
use crate::diagnostic::DiagnosticDraft;

pub(super) fn check(source: &str, module: &mut Module) {
    let mut found: Vec<DiagnosticDraft> = redeclared(module).collect();
    // A `var` inside a block is visible at the top level too, and is not collected.
    if !source.contains("var ") {
        found.extend(undeclared_exports(module));
    }
    module.diagnostics.extend(found);
}

fn redeclared(module: &Module) -> impl Iterator<Item = DiagnosticDraft> {
    module.redeclared().map(|local| {
        let message = format!("`{}` is declared more than once in `{}`", local.name, module.file);
        error("handler-syntax", &module.file, local.span.clone(), message)
    })
}

fn undeclared_exports(module: &Module) -> impl Iterator<Item = DiagnosticDraft> {
    let undeclared = |export: &Export| match &export.value {
        // `export const a = b` may name a global; only `export { b }` must name a binding.
        Value::Local(name) if module.local(name).is_none() => {
            let is_declared = export.name == "default" || module.local(&export.name).is_some();
            (!is_declared).then(|| name.clone())
        }
        _ => None,
    };
    module.exports.iter().filter_map(move |export| {
        let name = undeclared(export)?;
        let message = format!("`{name}` is exported but not declared in `{}`", module.file);
        Some(error("handler-syntax", &module.file, export.span.clone(), message))
    })
}
