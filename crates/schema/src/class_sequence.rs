//! A fast path for the most common patterns, such as `^[A-Z]{3}-[0-9]+$`: a sequence of ASCII characters and classes
//! with counts. Where greedy matching never takes what a later class needs, one pass over the bytes decides. Every other
//! pattern goes to the regex engine.

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
    fn new(class: AsciiSet, (min, max): (usize, usize)) -> Self {
        Self { class: [class as u64, (class >> 64) as u64, 0, 0], min, max }
    }

    fn accepts(&self, byte: u8) -> bool {
        self.class[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.class.iter().zip(&other.class).any(|(mine, other)| mine & other != 0)
    }
}

impl ClassSequence {
    /// `None` when the pattern is no such sequence.
    pub fn parse(pattern: &str) -> Option<Self> {
        let mut rest = pattern.strip_prefix('^')?.strip_suffix('$')?.as_bytes();
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let class = parse_atom(&mut rest)?;
            steps.push(Step::new(class, parse_quantifier(&mut rest)?));
        }
        steps
            .iter()
            .enumerate()
            .all(|(at, step)| is_unambiguous(step, &steps, at))
            .then(|| Self { steps: steps.into() })
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

/// Whether greedy matching is right: nothing that may follow the step starts with a character of the step.
fn is_unambiguous(step: &Step, steps: &[Step], at: usize) -> bool {
    if step.min == step.max {
        return true;
    }
    for next in steps.iter().skip(at + 1) {
        if next.overlaps(step) {
            return false;
        }
        if next.min > 0 {
            break;
        }
    }
    true
}

/// Removes the first byte.
fn pop(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

fn parse_atom(rest: &mut &[u8]) -> Option<AsciiSet> {
    match pop(rest)? {
        b'\\' => parse_escape(rest).map(|(class, _)| class),
        b'[' => parse_class(rest),
        b'^' | b'$' | b'.' | b'*' | b'+' | b'?' | b'(' | b')' | b']' | b'{' | b'}' | b'|' => None,
        byte => byte.is_ascii().then(|| 1 << byte),
    }
}

/// After a backslash: the class, and the character if it is a single one.
fn parse_escape(rest: &mut &[u8]) -> Option<(AsciiSet, Option<u8>)> {
    const DIGITS: AsciiSet = range(b'0', b'9');
    match pop(rest)? {
        b'd' => Some((DIGITS, None)),
        b'w' => Some((DIGITS | range(b'a', b'z') | range(b'A', b'Z') | 1 << b'_', None)),
        byte => byte.is_ascii_punctuation().then_some((1 << byte, Some(byte))),
    }
}

const fn range(from: u8, to: u8) -> AsciiSet {
    (AsciiSet::MAX >> (127 - (to - from))) << from
}

/// The inside of brackets. Negated classes are left to the engine, because they match more than ASCII.
fn parse_class(rest: &mut &[u8]) -> Option<AsciiSet> {
    let mut class = 0;
    if matches!(rest.first(), Some(b'^' | b']')) {
        return None;
    }
    loop {
        let (members, single) = match pop(rest)? {
            b']' => return Some(class),
            b'\\' => parse_escape(rest)?,
            byte => (byte.is_ascii().then(|| 1 << byte)?, Some(byte)),
        };
        class |= members;
        if let [b'-', end, ..] = *rest
            && *end != b']'
        {
            // Only plain ranges; the engine handles the others.
            let (from, to) = (single?, *end);
            if from > to || !to.is_ascii_alphanumeric() {
                return None;
            }
            class |= range(from, to);
            *rest = rest.get(2..)?;
        }
    }
}

fn parse_quantifier(rest: &mut &[u8]) -> Option<(usize, usize)> {
    let counts = match rest.first() {
        Some(b'?') => (0, 1),
        Some(b'*') => (0, usize::MAX),
        Some(b'+') => (1, usize::MAX),
        Some(b'{') => {
            let end = rest.iter().position(|byte| *byte == b'}')?;
            let counts = std::str::from_utf8(rest.get(1..end)?).ok()?;
            *rest = rest.get(end..)?;
            match counts.split_once(',') {
                None => (parse_count(counts)?, parse_count(counts)?),
                Some((min, "")) => (parse_count(min)?, usize::MAX),
                Some((min, max)) => (parse_count(min)?, parse_count(max)?),
            }
        }
        _ => return Some((1, 1)),
    };
    pop(rest)?;
    // Lazy quantifiers are rare and left to the engine.
    (counts.0 <= counts.1 && rest.first() != Some(&b'?')).then_some(counts)
}

fn parse_count(digits: &str) -> Option<usize> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "class_sequence_tests.rs"]
mod tests;
