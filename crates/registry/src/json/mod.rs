//! JSON as people write it: parsed with duplicate keys noticed, and with a way back from a pointer to the text.

mod locate;
mod parse;
mod scan;

pub use locate::{duplicate_keys, locate};
pub use parse::{Parsed, SyntaxError, parse};
pub use toolwright_contract::json::write_canonical;

#[cfg(test)]
mod json_tests;
