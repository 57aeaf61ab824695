//! Warns about globals that browsers or Node.js have and the engine does not. Only a warning, because the code may
//! test for them.

use super::module::Module;
use super::parse_module::range;
use oxc_ast::ast::{
    BindingIdentifier, Expression, IdentifierReference, Program, UnaryExpression, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use std::collections::BTreeMap;
use std::ops::Range;

/// The alternative to a global that the engine lacks; `None` for other names.
pub(super) fn replacement(name: &str) -> Option<&'static str> {
    Some(match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => "use `context.http.fetch`",
        "require" | "module" | "exports" => "handlers are ES modules: use `import` and `export`",
        "Buffer" => "use `TextEncoder`, `TextDecoder` and `Uint8Array`",
        "setInterval" | "clearInterval" | "setImmediate" | "clearImmediate" => {
            "use `setTimeout` or `queueMicrotask`"
        }
        "localStorage" | "sessionStorage" | "indexedDB" => {
            "a handler has no state between calls; read `context.session.state`"
        }
        "performance" => "use `Date.now()`",
        "Intl" => "format without it; `toISOString` and arithmetic are available",
        "global" => "use `globalThis`",
        "process" | "Deno" | "Bun" | "window" | "document" | "navigator" | "Worker" | "__dirname"
        | "__filename" => "a handler has only `context` and the language's own globals",
        _ => return None,
    })
}

pub(super) fn check(program: &Program, source: &str, module: &mut Module) {
    let mut uses = Uses::default();
    uses.visit_program(program);
    for (name, span) in uses.first_uses {
        if uses.excused.contains(&name) {
            continue;
        }
        let written = source.get(span.clone()).unwrap_or(name);
        let message = format!("`{written}` does not exist where handlers run");
        let help = replacement(name).unwrap_or_default();
        module.error("handler-unavailable-global", span, message).help(help).warning();
    }
}

#[derive(Default)]
struct Uses<'a> {
    first_uses: BTreeMap<&'a str, Range<usize>>,
    /// Bound somewhere in the file, or tested with `typeof`. Scopes are ignored: a missing warning is better than a
    /// wrong one.
    excused: Vec<&'a str>,
}

impl<'a> Visit<'a> for Uses<'a> {
    fn visit_identifier_reference(&mut self, reference: &IdentifierReference<'a>) {
        let name = reference.name.as_str();
        if replacement(name).is_some() {
            self.first_uses.entry(name).or_insert_with(|| range(reference.span));
        }
    }

    fn visit_binding_identifier(&mut self, binding: &BindingIdentifier<'a>) {
        let name = binding.name.as_str();
        if replacement(name).is_some() && !self.excused.contains(&name) {
            self.excused.push(name);
        }
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        if let (UnaryOperator::Typeof, Expression::Identifier(name)) = (unary.operator, &unary.argument) {
            self.excused.push(name.name.as_str());
        }
        walk::walk_unary_expression(self, unary);
    }
}
