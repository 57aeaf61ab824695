//! Parses a source into a `Module`: in a reused arena, on a stack that is large enough.

use super::module::Module;
use super::shape::{MAX_NESTING, Shape, measure};
use super::{context_members, dynamic_imports, error, globals, module_items};
use crate::diagnostic::DiagnosticDraft;
use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::{SourceType, Span};
use std::cell::Cell;
use std::ops::Range;
use toolwright_contract::escape::is_bidi_control;

/// The stack that the calling thread is assumed to have left: worker threads commonly have 2 MiB.
const INLINE_STACK: usize = 1 << 20;
/// The largest stack for parsing. Only reserved: memory is used as deep as the source really nests.
const MAX_STACK: usize = if cfg!(debug_assertions) { 4 << 30 } else { 1 << 30 };
/// A larger arena is freed, so that one large file does not stay in memory.
const MAX_REUSED_ARENA: usize = 1 << 20;
const MAX_HIDDEN_REPORTED: usize = 20;

thread_local! {
    static ARENA: Cell<Option<Allocator>> = const { Cell::new(None) };
}

/// Parses the module `file` of a tool.
pub(super) fn parse(file: &str, source: &str) -> Module {
    let shape = measure(source);
    if let Some(at) = shape.too_deep_at {
        let message = format!("brackets in `{file}` nest deeper than {MAX_NESTING} levels");
        return Module::unparsed(file, error("handler-too-deep", file, at..at + 1, message));
    }
    if shape.stack <= INLINE_STACK {
        return parse_inline(file, source, &shape);
    }
    let module = if shape.stack > MAX_STACK { None } else { parse_on_thread(file, source, &shape) };
    module.unwrap_or_else(|| Module::unparsed(file, too_large(file, source)))
}

fn too_large(file: &str, source: &str) -> DiagnosticDraft {
    let message = format!("`{file}` is too large to be checked ({} bytes)", source.len());
    error("handler-too-large", file, 0..0, message)
        .with_help("split it, or keep generated data out of the handler")
}

/// Parses on a thread with a larger stack. `None` if the thread cannot be started or the parser panics.
fn parse_on_thread(file: &str, source: &str, shape: &Shape) -> Option<Module> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(shape.stack + INLINE_STACK)
            .spawn_scoped(scope, || parse_inline(file, source, shape))
            .ok()?
            .join()
            .ok()
    })
}

fn parse_inline(file: &str, source: &str, shape: &Shape) -> Module {
    let mut arena = ARENA.take().unwrap_or_default();
    let module = parse_in(&arena, file, source, shape);
    if arena.capacity() <= MAX_REUSED_ARENA {
        arena.reset();
        ARENA.set(Some(arena));
    }
    module
}

fn parse_in(arena: &Allocator, file: &str, source: &str, shape: &Shape) -> Module {
    let options = ParseOptions {
        parse_regular_expression: true,
        preserve_parens: false,
        enable_ident_hashes: false,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(arena, source, SourceType::mjs()).with_options(options).parse();
    let mut module = Module::new(file, parsed.panicked);
    report_syntax_errors(&parsed, source, &mut module);
    report_hidden_characters(source, &mut module);
    module_items::collect(&parsed.program, source, &mut module);
    dynamic_imports::collect(&parsed.module_record, source, &mut module);
    if shape.may_use_globals {
        globals::check(&parsed.program, source, &mut module);
    }
    if context_members::PARAMETERS.iter().any(|name| source.contains(name)) && !parsed.panicked {
        context_members::check(&parsed.program, &mut module);
    }
    module
}

fn report_syntax_errors(parsed: &ParserReturn, source: &str, module: &mut Module) {
    for diagnostic in parsed.diagnostics.errors() {
        let label = diagnostic.labels.iter().find(|label| label.primary()).or(diagnostic.labels.first());
        let span = label.map_or(0..0, |label| {
            let start = label.offset() as usize;
            start..start + label.len() as usize
        });
        let span = clamp(span, source);
        let help = help_for(&diagnostic.message, source, &span).or(diagnostic.help.as_deref());
        let message = format!("`{}` is not valid JavaScript: {}", module.file, diagnostic.message);
        module.error("handler-syntax", span, message).help = help.map(str::to_owned);
    }
}

/// Help for handler authors where that of the parser does not apply to them.
fn help_for(message: &str, source: &str, span: &Range<usize>) -> Option<&'static str> {
    let last_word = source[..span.start].trim_end().rsplit(|c: char| !c.is_alphanumeric()).next();
    let is_type = source[span.start..].starts_with(':')
        || source[span.end..].starts_with(':')
        || matches!(last_word, Some("interface" | "enum" | "type" | "declare" | "namespace"));
    if message.contains("JSX") {
        Some("handlers are plain JavaScript: JSX is not available")
    } else if is_type && (message.starts_with("Expected") || message.starts_with("Missing initializer")) {
        Some("handlers are plain JavaScript: leave out the types of TypeScript")
    } else {
        None
    }
}

fn report_hidden_characters(source: &str, module: &mut Module) {
    if source.is_ascii() {
        return;
    }
    let controls = source.char_indices().filter(|(_, character)| is_bidi_control(*character));
    for (at, character) in controls.take(MAX_HIDDEN_REPORTED) {
        let file = &module.file;
        let message =
            format!("`{file}` has the bidirectional control character U+{:04X}", u32::from(character));
        module
            .error("handler-hidden-unicode", at..at + character.len_utf8(), message)
            .help("it can make code read differently from what it does; remove it or write it as an escape")
            .warning();
    }
}

/// The parser may point past the end of the file, or at a byte inside a character.
fn clamp(span: Range<usize>, source: &str) -> Range<usize> {
    let start = source.floor_char_boundary(span.start.min(source.len()));
    let end = source.ceil_char_boundary(span.end.min(source.len()));
    start..end.max(start)
}

pub(super) fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

#[cfg(test)]
#[path = "stack_tests.rs"]
#[rustfmt::skip] // tables
mod tests;
