//! Source to `Module`: one parse in a reused arena, on a stack that is large enough.

use super::module::Module;
use super::shape::{MOST_NESTED, Shape, measure};
use super::{collect, dynamic, globals};
use crate::hidden::is_bidi_control;
use crate::problem::Problem;
use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::{SourceType, Span};
use std::cell::Cell;
use std::ops::Range;

/// What a caller's thread is trusted to have left: workers commonly own 2 MiB.
const INLINE_STACK: usize = 1 << 20;
/// Reserved, not used, unless the source really nests as deep as it could.
const MOST_STACK: usize = if cfg!(debug_assertions) { 4 << 30 } else { 1 << 30 };
/// An arena beyond this is given back, so that one large file does not stay in memory.
const MOST_KEPT: usize = 1 << 20;
const MOST_HIDDEN: usize = 20;

thread_local! {
    static ARENA: Cell<Option<Allocator>> = const { Cell::new(None) };
}

pub(super) fn parse(source: &str) -> Module {
    let shape = measure(source);
    if let Some(at) = shape.too_deep_at {
        let message = format!("brackets nest deeper than {MOST_NESTED} levels");
        return Module::refused(Problem::error("handler-too-deep", at..at + 1, message));
    }
    if shape.stack <= INLINE_STACK {
        return parse_here(source, &shape);
    }
    if shape.stack > MOST_STACK {
        return Module::refused(too_large(source));
    }
    parse_apart(source, &shape).unwrap_or_else(|| Module::refused(too_large(source)))
}

fn too_large(source: &str) -> Problem {
    let message = format!("the file is too large to be checked ({} bytes)", source.len());
    Problem::error("handler-too-large", 0..0, message)
        .with_help("split it, or keep generated data out of the handler")
}

/// `None` when the system gives no such thread, or the parser itself failed.
fn parse_apart(source: &str, shape: &Shape) -> Option<Module> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(shape.stack + INLINE_STACK)
            .spawn_scoped(scope, || parse_here(source, shape))
            .ok()?
            .join()
            .ok()
    })
}

fn parse_here(source: &str, shape: &Shape) -> Module {
    // Taken out rather than borrowed: an arena in use is never seen twice.
    let mut arena = ARENA.take().unwrap_or_default();
    let module = parse_in(&arena, source, shape);
    if arena.capacity() <= MOST_KEPT {
        arena.reset();
        ARENA.set(Some(arena));
    }
    module
}

fn parse_in(arena: &Allocator, source: &str, shape: &Shape) -> Module {
    let options = ParseOptions {
        parse_regular_expression: true,
        preserve_parens: false,
        enable_ident_hashes: false,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(arena, source, SourceType::mjs()).with_options(options).parse();
    let mut module = Module::default();
    module.is_broken = parsed.panicked;
    syntax_problems(&parsed, source, &mut module.problems);
    hidden_problems(source, &mut module.problems);
    collect::collect(&parsed.program, source, &mut module);
    dynamic::collect(&parsed.module_record, source, &mut module);
    if shape.may_use_globals {
        globals::check(&parsed.program, source, &mut module.problems);
    }
    module
}

fn syntax_problems(parsed: &ParserReturn, source: &str, problems: &mut Vec<Problem>) {
    for diagnostic in parsed.diagnostics.errors() {
        let label = diagnostic.labels.iter().find(|label| label.primary()).or(diagnostic.labels.first());
        let span = label.map_or(0..0, |label| {
            let start = label.offset() as usize;
            start..start + label.len() as usize
        });
        let message = diagnostic.message.to_string();
        let span = clamp(span, source);
        let help = help_for(&message, source, &span).or(diagnostic.help.as_deref()).map(str::to_owned);
        problems.push(Problem::error("handler-syntax", span, message).with_help_if(help));
    }
}

/// The parser advises users of the parser; these are the cases where an author needs other advice.
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

fn hidden_problems(source: &str, problems: &mut Vec<Problem>) {
    if source.is_ascii() {
        return;
    }
    let marks = source.char_indices().filter(|(_, found)| is_bidi_control(*found));
    problems.extend(marks.take(MOST_HIDDEN).map(|(at, found)| {
        let message =
            format!("the source contains the bidirectional control character U+{:04X}", u32::from(found));
        Problem::warning("handler-hidden-unicode", at..at + found.len_utf8(), message).with_help(
            "it can make code read differently from what it does; remove it or write it as an escape",
        )
    }));
}

/// The parser may point behind the end of the file, or at a byte inside a character.
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
