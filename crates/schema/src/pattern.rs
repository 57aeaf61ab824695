//! Regular expressions of schemas: ECMAScript with the `u` flag, translated and built when first needed, because most
//! tools of a large set are never called. Matching is bounded. A pattern that exceeds the bound or cannot be built
//! matches nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use fancy_regex::{Regex, RegexBuilder};
use oxc_allocator::Allocator;
use oxc_regular_expression::{LiteralParser, Options, ast};

use crate::class_sequence::ClassSequence;

const MAX_BACKTRACKS: usize = 100_000;
/// A pattern with look-around starts anew at each position, so longer texts do not match it. Patterns without
/// look-around and back-references take linear time.
const MAX_BACKTRACKED_BYTES: usize = 4096;
/// Terms of a pattern once its repetitions are expanded.
const MAX_TERMS: u64 = 100_000;
/// The parser recurses into groups; deeper patterns are rejected before they reach it.
const MAX_GROUP_DEPTH: usize = 200;

#[derive(Debug)]
pub struct Pattern {
    pub text: Box<str>,
    matcher: OnceLock<Arc<Matcher>>,
}

#[derive(Debug)]
enum Matcher {
    ClassSequence(ClassSequence),
    /// The longest text that is matched, and the expression.
    Regex(usize, Box<Regex>),
    Nothing,
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), matcher: OnceLock::new() }
    }

    pub fn matches(&self, value: &str) -> bool {
        match &**self.matcher.get_or_init(|| cached_matcher(&self.text)) {
            Matcher::ClassSequence(sequence) => sequence.matches(value),
            Matcher::Regex(max, regex) => value.len() <= *max && regex.is_match(value).unwrap_or(false),
            Matcher::Nothing => false,
        }
    }
}

/// Tools repeat each other's patterns, and building one is expensive.
static MATCHER_CACHE: LazyLock<RwLock<HashMap<Box<str>, Arc<Matcher>>>> = LazyLock::new(RwLock::default);
const MAX_CACHED_MATCHERS: usize = 1024;

fn cached_matcher(pattern: &str) -> Arc<Matcher> {
    if let Some(matcher) = MATCHER_CACHE.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return Arc::clone(matcher);
    }
    let matcher = Arc::new(Matcher::new(pattern));
    let mut cache = MATCHER_CACHE.write().unwrap_or_else(PoisonError::into_inner);
    if cache.len() < MAX_CACHED_MATCHERS {
        cache.insert(pattern.into(), Arc::clone(&matcher));
    }
    matcher
}

impl Matcher {
    fn new(pattern: &str) -> Self {
        if let Some(sequence) = ClassSequence::parse(pattern) {
            return Self::ClassSequence(sequence);
        }
        let max = if needs_backtracking(pattern) { MAX_BACKTRACKED_BYTES } else { usize::MAX };
        build(pattern).map_or(Self::Nothing, |regex| Self::Regex(max, Box::new(regex)))
    }
}

/// Whether there is look-around or a back-reference. A false positive only bounds the text's length.
fn needs_backtracking(pattern: &str) -> bool {
    let around = ["(?=", "(?!", "(?<=", "(?<!", r"\k<"];
    let back = |pair: &[u8]| matches!(pair, [b'\\', b'1'..=b'9']);
    around.iter().any(|mark| pattern.contains(mark)) || pattern.as_bytes().windows(2).any(back)
}

/// Whether the validator can match a pattern; one that it cannot build matches nothing.
#[must_use]
pub fn is_supported_pattern(pattern: &str) -> bool {
    build(pattern).is_some()
}

/// Builds a regular expression of ECMAScript, with a bound on its work.
pub fn build(pattern: &str) -> Option<Regex> {
    let pattern = rewrite_classes(pattern);
    let translated = jsonschema_regex::to_rust_regex(&pattern).ok()?;
    RegexBuilder::new(&translated).backtrack_limit(MAX_BACKTRACKS).build().ok()
}

/// Rewrites what only ECMAScript allows in classes: `[^]` matches everything, `[]` nothing, and `[` in a class is
/// literal.
fn rewrite_classes(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(first) = rest.chars().next() {
        let (text, length) = match first {
            '\\' => {
                let length = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
                (rest.get(..length).unwrap_or(rest), length)
            }
            '[' if in_class => (r"\[", 1),
            '[' if rest.starts_with("[^]") => (r"[\s\S]", 3),
            '[' if rest.starts_with("[]") => (r"[^\s\S]", 2),
            _ => {
                in_class = if in_class { first != ']' } else { first == '[' };
                (rest.get(..first.len_utf8()).unwrap_or(rest), first.len_utf8())
            }
        };
        written.push_str(text);
        rest = rest.get(length..).unwrap_or_default();
    }
    written
}

/// Why a schema may not use a pattern.
#[derive(Debug)]
pub enum PatternError {
    Syntax(String),
    TooLarge,
}

/// Checks a pattern as `new RegExp(pattern, "u")` would.
pub fn check_syntax(pattern: &str) -> Result<(), PatternError> {
    parse(pattern, |_| Ok(()))
}

/// Checks a pattern's syntax, and its size once its repetitions are expanded.
pub fn check(pattern: &str) -> Result<(), PatternError> {
    // Node 20 and 22 do not know inline modifiers such as `(?i:…)`.
    let modifiers = || PatternError::Syntax("Invalid group".to_owned());
    parse(pattern, |body| {
        if count_terms(body).ok_or_else(modifiers)? > MAX_TERMS {
            Err(PatternError::TooLarge)
        } else {
            Ok(())
        }
    })
}

/// Parses a pattern and passes it on, because it lives no longer than the parser's arena.
pub fn parse<T>(
    pattern: &str,
    then: impl FnOnce(&ast::Disjunction<'_>) -> Result<T, PatternError>,
) -> Result<T, PatternError> {
    if nests_deeply(pattern) {
        return Err(PatternError::TooLarge);
    }
    let allocator = Allocator::default();
    let parsed = LiteralParser::new(&allocator, pattern, Some("u"), Options::default()).parse();
    then(&parsed.map_err(|error| PatternError::Syntax(error.message.to_string()))?.body)
}

/// Whether the pattern also parses without the `u` flag, as Ajv builds it to test property names.
pub fn is_valid_without_unicode(pattern: &str) -> bool {
    let allocator = Allocator::default();
    LiteralParser::new(&allocator, pattern, None, Options::default()).parse().is_ok()
}

fn nests_deeply(pattern: &str) -> bool {
    let (mut depth, mut is_escaped) = (0_usize, false);
    pattern.bytes().any(|byte| {
        match byte {
            b'(' if !is_escaped => depth += 1,
            b')' if !is_escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = byte == b'\\' && !is_escaped;
        depth > MAX_GROUP_DEPTH
    })
}

/// `None` when the pattern uses inline modifiers.
fn count_terms(disjunction: &ast::Disjunction<'_>) -> Option<u64> {
    let terms = disjunction.body.iter().flat_map(|alternative| alternative.body.iter());
    terms.map(term_size).try_fold(0_u64, |sum, size| Some(sum.saturating_add(size?)))
}

fn term_size(term: &ast::Term<'_>) -> Option<u64> {
    match term {
        ast::Term::Quantifier(quantifier) => {
            let times = quantifier.max.unwrap_or(quantifier.min.max(1));
            Some(term_size(&quantifier.body)?.saturating_mul(times))
        }
        ast::Term::CapturingGroup(group) => Some(count_terms(&group.body)?.max(1)),
        ast::Term::IgnoreGroup(group) if group.modifiers.is_some() => None,
        ast::Term::IgnoreGroup(group) => Some(count_terms(&group.body)?.max(1)),
        ast::Term::LookAroundAssertion(around) => Some(count_terms(&around.body)?.max(1)),
        _ => Some(1),
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
