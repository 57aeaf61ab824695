//! Dynamic imports. The parser records their positions, and the specifier is read from the text; the syntax tree is
//! not visited.

use super::module::{Module, Request};
use super::parse_module::range;
use super::specifier::Target;
use crate::excerpt::excerpt;
use oxc_syntax::module_record::ModuleRecord;
use std::ops::Range;

pub(super) fn collect(record: &ModuleRecord, source: &str, module: &mut Module) {
    for import in &record.dynamic_imports {
        let (whole, argument) = (range(import.span), range(import.module_request));
        let text = source.get(argument.clone()).unwrap_or_default();
        match literal(text) {
            Some(specifier) => module.requests.push(Request {
                specifier: specifier.to_owned(),
                attributes: attributes(source, &whole, &argument),
                span: argument,
                names: Vec::new(),
                target: Target::Unknown,
            }),
            None => {
                let message = format!("`import({})` must name its module literally", excerpt(text));
                module
                    .error("handler-dynamic-import", argument, message)
                    .help("write import('./file.js'): what a handler loads is fixed when it is built");
            }
        }
    }
}

/// The contents of a string literal, or of a template without substitutions.
fn literal(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_computed = inner.contains([quote, '\\']) || quote == '`' && inner.contains("${");
    (!is_computed).then_some(inner)
}

/// A second argument, or `import.defer(…)`.
fn attributes(source: &str, whole: &Range<usize>, argument: &Range<usize>) -> Option<Range<usize>> {
    let before = source.get(whole.start..argument.start)?;
    if before.contains('.') {
        return Some(whole.start..argument.start);
    }
    let after = source.get(argument.end..whole.end)?;
    let rest = after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ')'));
    let start = whole.end - rest.len();
    let has_argument = !rest.is_empty() && !rest.starts_with('/');
    has_argument.then(|| start..whole.end.saturating_sub(1).max(start))
}
