//! The validator against what others decided: Ajv, the official suite, tools from the wild, and hostile input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "validate/ajv_corpus.rs"]
mod ajv_corpus;
#[path = "validate/hostile.rs"]
mod hostile;
#[path = "validate/real_tools.rs"]
mod real_tools;
#[path = "validate/suite.rs"]
mod suite;
