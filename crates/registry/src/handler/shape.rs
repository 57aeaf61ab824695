//! One pass over a source's bytes before it is parsed: how deep its brackets nest, the most stack that the parser could
//! need, and whether it may use a global that the engine lacks.
//! The parser and the visitors of the tree recurse without a limit, and a stack overflow cannot be caught. Bracket
//! depth does not bound the recursion (`!!!!x`, `a=>a=>…`, or a bracket closed only inside a string), but every level
//! costs at least one token.

use super::globals::replacement;

/// Only generated code nests deeper, and it would fail in the engine.
pub(super) const MAX_NESTING: usize = 1_000;

/// Stack per opening bracket and per other token. Measured with oxc 0.146: at most 1,830 and 401
/// bytes optimised, 3,100 and 1,420 unoptimised; the rest is margin.
const STACK_PER_BRACKET: usize = if cfg!(debug_assertions) { 5_000 } else { 3_000 };
const STACK_PER_TOKEN: usize = if cfg!(debug_assertions) { 2_200 } else { 650 };

#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Where the brackets first nest deeper than `MAX_NESTING`.
    pub too_deep_at: Option<usize>,
    /// Bytes of stack that suffice to parse and visit the source.
    pub stack: usize,
    /// Some word is the name of a missing global and not a property name.
    pub may_use_globals: bool,
}

pub(super) fn measure(source: &str) -> Shape {
    let bytes = source.as_bytes();
    let mut shape = Shape::default();
    let (mut depth, mut brackets, mut tokens) = (0usize, 0usize, 0usize);
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let start = index;
        index += 1;
        match byte {
            b'(' | b'[' | b'{' => {
                brackets += 1;
                depth += 1;
                if depth > MAX_NESTING && shape.too_deep_at.is_none() {
                    shape.too_deep_at = Some(start);
                }
            }
            b')' | b']' | b'}' => {
                tokens += 1;
                depth = depth.saturating_sub(1);
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ if is_word(byte) => {
                while bytes.get(index).is_some_and(|next| is_word(*next)) {
                    index += 1;
                }
                tokens += 1;
                let is_property = start > 0 && bytes[start - 1] == b'.';
                shape.may_use_globals |= !is_property && replacement(&source[start..index]).is_some();
            }
            _ => tokens += 1,
        }
    }
    shape.stack = brackets * STACK_PER_BRACKET + tokens * STACK_PER_TOKEN;
    shape
}

/// Bytes of one identifier, keyword or number. Bytes beyond ASCII may be white space between two,
/// so each of them counts as a token of its own.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}
