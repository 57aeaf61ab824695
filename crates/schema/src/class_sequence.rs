//! A fast path for the most common patterns, such as `^[A-Z]{3}-[0-9]+$`: a sequence of ASCII characters and classes
//! with counts. Where greedy matching never consumes what a later class needs, one pass over the bytes decides. Every
//! other pattern goes to the regex engine.

use oxc_regular_expression::ast::{
    BoundaryAssertionKind, Character, CharacterClassContents, CharacterClassEscapeKind, CharacterKind,
    Disjunction, Term,
};

use crate::pattern;

/// A set of ASCII characters, a bit each.
type AsciiSet = u128;

#[derive(Debug)]
pub struct ClassSequence {
    steps: Box<[Step]>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    /// A bit for each byte; bits beyond ASCII are never set.
    class: [u64; 4],
    min: usize,
    max: usize,
}

impl Step {
    fn new(term: &Term<'_>) -> Option<Self> {
        let (atom, min, max) = match term {
            Term::Quantifier(quantifier) if quantifier.greedy => {
                let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
                (&quantifier.body, count(quantifier.min), quantifier.max.map_or(usize::MAX, count))
            }
            // Lazy quantifiers are no atoms: they are rare and left to the engine.
            atom => (atom, 1, 1),
        };
        let class = class_of(atom)?;
        Some(Self { class: [class as u64, (class >> 64) as u64, 0, 0], min, max })
    }

    fn accepts(&self, byte: u8) -> bool {
        self.class[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.class.iter().zip(&other.class).any(|(mine, other)| mine & other != 0)
    }
}

impl ClassSequence {
    /// `None` when the pattern is not such a sequence.
    pub fn parse(pattern: &str) -> Option<Self> {
        pattern::parse(pattern, |body| Ok(Self::new(body))).ok().flatten()
    }

    fn new(pattern: &Disjunction<'_>) -> Option<Self> {
        let [alternative] = pattern.body.as_slice() else { return None };
        let [Term::BoundaryAssertion(start), terms @ .., Term::BoundaryAssertion(end)] =
            alternative.body.as_slice()
        else {
            return None;
        };
        let is_whole = start.kind == BoundaryAssertionKind::Start && end.kind == BoundaryAssertionKind::End;
        let steps = terms.iter().map(Step::new).collect::<Option<Box<[Step]>>>()?;
        let is_unambiguous = (0..steps.len()).all(|at| is_unambiguous(&steps[at..]));
        (is_whole && is_unambiguous).then_some(Self { steps })
    }

    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text.as_bytes();
        for step in &self.steps {
            let max = step.max.min(rest.len());
            let taken = rest.iter().take(max).position(|byte| !step.accepts(*byte)).unwrap_or(max);
            if taken < step.min {
                return false;
            }
            rest = rest.split_at(taken).1;
        }
        rest.is_empty()
    }
}

/// Whether greedy matching of the first step is right: nothing that may follow it starts with one of its characters.
fn is_unambiguous(steps: &[Step]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return true };
    let required = rest.iter().position(|next| next.min > 0).map_or(rest.len(), |at| at + 1);
    step.min == step.max || !rest.iter().take(required).any(|next| next.overlaps(step))
}

/// The characters that a term matches. Negated classes are left to the engine, because they match more than ASCII.
fn class_of(term: &Term<'_>) -> Option<AsciiSet> {
    match term {
        Term::Character(character) => range(character, character),
        Term::CharacterClassEscape(escape) => escaped_class(escape.kind),
        Term::CharacterClass(class) if !class.negative && !class.body.is_empty() => {
            class.body.iter().try_fold(0, |set, member| {
                let members = match member {
                    CharacterClassContents::Character(character) => range(character, character),
                    CharacterClassContents::CharacterClassRange(range_of) => {
                        range(&range_of.min, &range_of.max)
                    }
                    CharacterClassContents::CharacterClassEscape(escape) => escaped_class(escape.kind),
                    _ => None,
                };
                Some(set | members?)
            })
        }
        _ => None,
    }
}

fn escaped_class(kind: CharacterClassEscapeKind) -> Option<AsciiSet> {
    let set = |accepts: fn(&u8) -> bool| (0..128).filter(accepts).fold(0, |set, byte| set | 1 << byte);
    match kind {
        CharacterClassEscapeKind::D => Some(set(u8::is_ascii_digit)),
        CharacterClassEscapeKind::W => Some(set(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')),
        _ => None,
    }
}

/// The characters between two that are written as themselves, with or without a backslash.
fn range(from: &Character, to: &Character) -> Option<AsciiSet> {
    let is_plain = |one: &Character| matches!(one.kind, CharacterKind::Symbol | CharacterKind::Identifier);
    let is_ascii = to.value < 128 && is_plain(from) && is_plain(to);
    is_ascii.then(|| (AsciiSet::MAX >> (127 - (to.value - from.value))) << from.value)
}

#[cfg(test)]
#[path = "class_sequence_tests.rs"]
mod tests;
