//! The patterns that tools write most, such as `^[A-Z]{3}-[0-9]+$`: ASCII characters and classes one after the other,
//! each so many times. Where no step can take what a later one needs, one pass over the bytes decides. Every other
//! pattern is left to the engine.

/// A set of ASCII characters, a bit each.
type Class = u128;

#[derive(Debug)]
pub struct Sequence {
    steps: Box<[Step]>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    /// A bit for each byte, of which those beyond ASCII are never set.
    class: [u64; 4],
    least: usize,
    most: usize,
}

impl Step {
    fn new(class: Class, (least, most): (usize, usize)) -> Self {
        Self { class: [class as u64, (class >> 64) as u64, 0, 0], least, most }
    }

    fn takes(&self, byte: u8) -> bool {
        self.class[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    fn shares(&self, other: &Self) -> bool {
        self.class.iter().zip(&other.class).any(|(mine, other)| mine & other != 0)
    }
}

impl Sequence {
    /// The sequence that a pattern is, if it is one.
    pub fn of(pattern: &str) -> Option<Self> {
        let mut rest = pattern.strip_prefix('^')?.strip_suffix('$')?.as_bytes();
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let class = atom(&mut rest)?;
            steps.push(Step::new(class, quantifier(&mut rest)?));
        }
        steps
            .iter()
            .enumerate()
            .all(|(at, step)| is_settled(step, &steps, at))
            .then(|| Self { steps: steps.into() })
    }

    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text.as_bytes();
        for step in &self.steps {
            let most = step.most.min(rest.len());
            let taken = rest.iter().take(most).position(|byte| !step.takes(*byte)).unwrap_or(most);
            if taken < step.least {
                return false;
            }
            rest = rest.split_at(taken).1;
        }
        rest.is_empty()
    }
}

/// Whether taking as much as possible is never too much: nothing that may follow starts with the same characters.
fn is_settled(step: &Step, steps: &[Step], at: usize) -> bool {
    if step.least == step.most {
        return true;
    }
    for next in steps.iter().skip(at + 1) {
        if next.shares(step) {
            return false;
        }
        if next.least > 0 {
            break;
        }
    }
    true
}

/// Takes the first byte off.
fn pop(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

fn atom(rest: &mut &[u8]) -> Option<Class> {
    match pop(rest)? {
        b'\\' => escape(rest).map(|(class, _)| class),
        b'[' => bracketed(rest),
        b'^' | b'$' | b'.' | b'*' | b'+' | b'?' | b'(' | b')' | b']' | b'{' | b'}' | b'|' => None,
        byte => byte.is_ascii().then(|| 1 << byte),
    }
}

/// What follows a backslash: the class, and the character if it is a single one.
fn escape(rest: &mut &[u8]) -> Option<(Class, Option<u8>)> {
    const DIGITS: Class = range(b'0', b'9');
    match pop(rest)? {
        b'd' => Some((DIGITS, None)),
        b'w' => Some((DIGITS | range(b'a', b'z') | range(b'A', b'Z') | 1 << b'_', None)),
        byte => byte.is_ascii_punctuation().then_some((1 << byte, Some(byte))),
    }
}

const fn range(from: u8, to: u8) -> Class {
    (Class::MAX >> (127 - (to - from))) << from
}

/// The inside of brackets. What starts with `^` takes more than ASCII.
fn bracketed(rest: &mut &[u8]) -> Option<Class> {
    let mut class = 0;
    if matches!(rest.first(), Some(b'^' | b']')) {
        return None;
    }
    loop {
        let (members, single) = match pop(rest)? {
            b']' => return Some(class),
            b'\\' => escape(rest)?,
            byte => (byte.is_ascii().then(|| 1 << byte)?, Some(byte)),
        };
        class |= members;
        if let [b'-', end, ..] = *rest
            && *end != b']'
        {
            // Anything but a plain range is for the engine to judge.
            let (from, to) = (single?, *end);
            if from > to || !to.is_ascii_alphanumeric() {
                return None;
            }
            class |= range(from, to);
            *rest = rest.get(2..)?;
        }
    }
}

fn quantifier(rest: &mut &[u8]) -> Option<(usize, usize)> {
    let counts = match rest.first() {
        Some(b'?') => (0, 1),
        Some(b'*') => (0, usize::MAX),
        Some(b'+') => (1, usize::MAX),
        Some(b'{') => {
            let end = rest.iter().position(|byte| *byte == b'}')?;
            let counts = std::str::from_utf8(rest.get(1..end)?).ok()?;
            *rest = rest.get(end..)?;
            match counts.split_once(',') {
                None => (number(counts)?, number(counts)?),
                Some((least, "")) => (number(least)?, usize::MAX),
                Some((least, most)) => (number(least)?, number(most)?),
            }
        }
        _ => return Some((1, 1)),
    };
    pop(rest)?;
    // A second `?` makes it lazy, which changes nothing here, but is rare enough to leave.
    (counts.0 <= counts.1 && rest.first() != Some(&b'?')).then_some(counts)
}

fn number(digits: &str) -> Option<usize> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
