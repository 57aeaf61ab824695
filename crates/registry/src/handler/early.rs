//! The early errors of a module's top level that the parser leaves to a semantic pass. Those inside
//! of functions show when the engine loads the module.

use super::module::{Export, Module, Value};
use crate::problem::Problem;

pub(super) fn check(source: &str, module: &mut Module) {
    let mut found: Vec<Problem> = declared_twice(module).collect();
    // A `var` inside a block is visible at the top level too, and its names are not gathered.
    if !source.contains("var ") {
        found.extend(undeclared_exports(module));
    }
    module.problems.extend(found);
}

fn declared_twice(module: &Module) -> impl Iterator<Item = Problem> {
    module.redeclared().map(|local| {
        let message = format!("`{}` is declared more than once", local.name);
        Problem::error("handler-syntax", local.span.clone(), message)
    })
}

fn undeclared_exports(module: &Module) -> impl Iterator<Item = Problem> {
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
        let message = format!("`{name}` is exported but not declared in this module");
        Some(Problem::error("handler-syntax", export.span.clone(), message))
    })
}
