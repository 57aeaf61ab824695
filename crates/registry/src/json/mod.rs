//! JSON files: parsed with duplicate keys detected, positions of pointers in the text, and canonical JSON.

mod locate;
mod parse;
mod scan;

pub use locate::{duplicate_keys, locate};
pub use parse::{Parsed, SyntaxError, parse};
pub use toolwright_contract::json::write_canonical;

#[cfg(test)]
mod json_tests;
