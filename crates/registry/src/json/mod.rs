//! JSON as people write it: parsed with duplicate keys noticed, and with a way back from a pointer to the text.

mod canonical;
mod locate;
mod parse;
mod scan;

pub use canonical::write_canonical;
pub use locate::{duplicate_keys, locate};
pub use parse::{Parsed, SyntaxError, parse};

#[cfg(test)]
mod json_tests;
