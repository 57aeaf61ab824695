//! JSON as people write it: parsed with duplicate keys noticed, and with a way back from a pointer to the text.

mod canonical;
mod locate;
mod parse;
mod scan;

pub use canonical::write_canonical;
pub use locate::{Part, duplicate_keys, locate};
pub use parse::{Parsed, SyntaxError, parse};

/// Appends one segment to an RFC 6901 pointer.
pub fn push_pointer(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for c in segment.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// `pointer` with one more segment.
pub fn child_pointer(pointer: &str, segment: &str) -> String {
    let mut child = String::with_capacity(pointer.len() + segment.len() + 1);
    child.push_str(pointer);
    push_pointer(&mut child, segment);
    child
}

#[cfg(test)]
mod json_tests;
