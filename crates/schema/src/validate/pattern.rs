//! Regular expressions of schemas: translated from ECMAScript and built when first needed, because
//! most tools of a large set are never called. Matching is bounded; what exceeds the bound, or
//! cannot be built, matches nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use fancy_regex::{Regex, RegexBuilder};

use crate::validate::sequence::Sequence;

const MOST_BACKTRACKS: usize = 100_000;
/// A pattern that looks around is tried at every place of a text anew: on longer texts than this it would take
/// too long, whatever it is. Patterns without look-around and back-references take linear time.
const LONGEST_BACKTRACKED: usize = 4096;

#[derive(Debug)]
pub struct Pattern {
    pub text: Box<str>,
    matcher: OnceLock<Arc<Matcher>>,
}

#[derive(Debug)]
enum Matcher {
    Exact(Box<str>),
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Box<str>),
    Sequence(Sequence),
    Linear(Box<Regex>),
    Backtracking(Box<Regex>),
    Nothing,
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), matcher: OnceLock::new() }
    }

    pub fn matches(&self, value: &str) -> bool {
        match &**self.matcher.get_or_init(|| shared(&self.text)) {
            Matcher::Exact(text) => value == &**text,
            Matcher::Prefix(text) => value.starts_with(&**text),
            Matcher::Suffix(text) => value.ends_with(&**text),
            Matcher::Contains(text) => value.contains(&**text),
            Matcher::Sequence(sequence) => sequence.matches(value),
            Matcher::Linear(regex) => regex.is_match(value).unwrap_or(false),
            Matcher::Backtracking(regex) => {
                value.len() <= LONGEST_BACKTRACKED && regex.is_match(value).unwrap_or(false)
            }
            Matcher::Nothing => false,
        }
    }
}

/// Tools repeat each other's patterns, and building one costs more than all else about it.
static BUILT: LazyLock<RwLock<HashMap<Box<str>, Arc<Matcher>>>> = LazyLock::new(RwLock::default);
/// Patterns beyond this many are built where they are used.
const MOST_SHARED: usize = 1024;

fn shared(pattern: &str) -> Arc<Matcher> {
    if let Some(matcher) = BUILT.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return Arc::clone(matcher);
    }
    let matcher = Arc::new(Matcher::new(pattern));
    let mut built = BUILT.write().unwrap_or_else(PoisonError::into_inner);
    if built.len() < MOST_SHARED {
        built.insert(pattern.into(), Arc::clone(&matcher));
    }
    matcher
}

impl Matcher {
    fn new(pattern: &str) -> Self {
        let start = pattern.strip_prefix('^');
        let inner = start.unwrap_or(pattern);
        let end = inner.strip_suffix('$');
        let inner = end.unwrap_or(inner);
        let plain = inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:/ @".contains(&byte));
        if plain {
            return match (start.is_some(), end.is_some()) {
                (true, true) => Self::Exact(inner.into()),
                (true, false) => Self::Prefix(inner.into()),
                (false, true) => Self::Suffix(inner.into()),
                (false, false) => Self::Contains(inner.into()),
            };
        }
        if let Some(sequence) = Sequence::of(pattern) {
            return Self::Sequence(sequence);
        }
        match build(pattern) {
            Some(regex) if backtracks(pattern) => Self::Backtracking(Box::new(regex)),
            Some(regex) => Self::Linear(Box::new(regex)),
            None => Self::Nothing,
        }
    }
}

/// Look-around and back-references; a false alarm only bounds the text's length.
fn backtracks(pattern: &str) -> bool {
    let around = ["(?=", "(?!", "(?<=", "(?<!", r"\k<"];
    let back =
        |pair: &[u8]| pair.first() == Some(&b'\\') && pair.get(1).is_some_and(|b| (b'1'..=b'9').contains(b));
    around.iter().any(|mark| pattern.contains(mark)) || pattern.as_bytes().windows(2).any(back)
}

/// A regular expression of ECMAScript, ready to be tried with a bound on its work.
pub(crate) fn build(pattern: &str) -> Option<Regex> {
    let pattern = with_empty_classes_written_out(pattern);
    let translated = jsonschema_regex::to_rust_regex(&pattern).ok()?;
    RegexBuilder::new(&translated).backtrack_limit(MOST_BACKTRACKS).build().ok()
}

/// `[^]` is everything and `[]` nothing, which only ECMAScript can write this way; and a `[` in a
/// class stands for itself.
fn with_empty_classes_written_out(pattern: &str) -> String {
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

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
