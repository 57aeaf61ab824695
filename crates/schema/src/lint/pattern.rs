//! Regular expressions in schemas: ECMAScript syntax with the `u` flag, a bound on their size when
//! repetitions are written out, and whether a `patternProperties` key takes a declared property.

use oxc_allocator::Allocator;
use oxc_regular_expression::{LiteralParser, Options, ast};

use super::problem::{Part, Path};
use super::walk::Linter;

/// Nodes of a pattern after its repetitions are written out.
const MOST_NODES: u64 = 100_000;
/// The parser recurses into groups; input beyond this is refused before it gets there.
const MOST_NESTING: usize = 200;

pub enum Fault {
    Syntax(String),
    TooCostly,
}

/// Checks one pattern as `new RegExp(pattern, "u")` would, then its size.
pub fn check(pattern: &str) -> Result<(), Fault> {
    if is_plain(pattern) {
        return Ok(());
    }
    if nests_deeply(pattern) {
        return Err(Fault::TooCostly);
    }
    let allocator = Allocator::default();
    let parsed = LiteralParser::new(&allocator, pattern, Some("u"), Options::default())
        .parse()
        .map_err(|error| Fault::Syntax(error.message.to_string()))?;
    if size(&parsed.body).ok_or_else(modifiers)? > MOST_NODES {
        return Err(Fault::TooCostly);
    }
    Ok(())
}

/// Whether the pattern can also be read without the `u` flag, as Ajv does to try it on names.
pub fn is_valid_without_unicode(pattern: &str) -> bool {
    is_plain(pattern) || {
        let allocator = Allocator::default();
        LiteralParser::new(&allocator, pattern, None, Options::default()).parse().is_ok()
    }
}

/// Engines of Node 20 and 22 do not know `(?i:…)`.
fn modifiers() -> Fault {
    Fault::Syntax("Invalid group".to_owned())
}

/// Letters, digits, `_`, `-` and anchors at the ends need no parser.
fn is_plain(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn nests_deeply(pattern: &str) -> bool {
    let mut depth = 0_usize;
    let mut deepest = 0_usize;
    let mut escaped = false;
    for byte in pattern.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest > MOST_NESTING
}

/// `None` when the pattern uses inline modifiers.
fn size(disjunction: &ast::Disjunction<'_>) -> Option<u64> {
    let mut sum = 0_u64;
    for term in disjunction.body.iter().flat_map(|alternative| alternative.body.iter()) {
        sum = sum.saturating_add(term_size(term)?);
    }
    Some(sum)
}

fn term_size(term: &ast::Term<'_>) -> Option<u64> {
    match term {
        ast::Term::Quantifier(quantifier) => {
            let times = quantifier.max.unwrap_or(quantifier.min.max(1));
            Some(term_size(&quantifier.body)?.saturating_mul(times))
        }
        ast::Term::CapturingGroup(group) => Some(size(&group.body)?.max(1)),
        ast::Term::IgnoreGroup(group) if group.modifiers.is_some() => None,
        ast::Term::IgnoreGroup(group) => Some(size(&group.body)?.max(1)),
        ast::Term::LookAroundAssertion(around) => Some(size(&around.body)?.max(1)),
        _ => Some(1),
    }
}

/// A `patternProperties` key, ready to be tried on property names. Ajv tries it without the `u`
/// flag, where `\p` and `\u{` mean other things than the author thinks; those never match here.
pub struct Matcher(Option<fancy_regex::Regex>);

impl Matcher {
    pub fn new(pattern: &str) -> Self {
        let literal = [r"\p", r"\P", r"\u{"].iter().any(|escape| pattern.contains(escape));
        if literal {
            return Self(None);
        }
        Self(crate::validate::pattern::build(pattern))
    }

    pub fn takes(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(name).unwrap_or(false))
    }
}

impl Linter<'_> {
    /// Reports what is wrong with a pattern; `true` when nothing is.
    pub(super) fn pattern(&mut self, pattern: &str, path: &Path<'_>, part: Part) -> bool {
        match check(pattern) {
            Ok(()) => return true,
            Err(Fault::Syntax(reason)) => {
                let message = format!("`{pattern}` is not a regular expression: {}", plain_reason(&reason));
                let help = syntax_help(pattern).to_owned();
                self.report.add("schema-bad-pattern", path, part, message, Some(help));
            }
            Err(Fault::TooCostly) => {
                let message = "the pattern is too large once its repetitions are written out".to_owned();
                let help = "use smaller repetition counts, or `maxLength` for the length".to_owned();
                self.report.add("schema-pattern-too-costly", path, part, message, Some(help));
            }
        }
        false
    }
}

/// The parser's reason without its preamble.
fn plain_reason(reason: &str) -> &str {
    reason.trim_start_matches("Invalid regular expression: ").trim_end_matches('.')
}

fn syntax_help(pattern: &str) -> &'static str {
    if pattern.starts_with("(?i)") {
        "ECMAScript has no inline flags: write `[Aa]` for either case"
    } else if pattern.contains(r"\A") || pattern.contains(r"\Z") || pattern.contains(r"\z") {
        "use `^` and `$` for the start and the end"
    } else if pattern.contains("(?P<") {
        "a named group is `(?<name>…)`"
    } else {
        "the syntax is ECMAScript with the `u` flag: escape only `^$\\.*+?()[]{}|/`"
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
