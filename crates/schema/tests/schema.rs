//! The linter and the validator against the decisions of others: Ajv, the official suite, real tools, hostile input.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "schema/ajv_cases.rs"]
mod ajv_cases;
#[path = "schema/ajv_corpus.rs"]
mod ajv_corpus;
#[path = "schema/corpora.rs"]
mod corpora;
#[path = "schema/deviations_from_ajv.rs"]
mod deviations_from_ajv;
#[path = "schema/hostile_input.rs"]
mod hostile_input;
#[path = "schema/lint_corpus.rs"]
mod lint_corpus;
#[path = "schema/official_suite.rs"]
mod official_suite;
#[path = "schema/real_tools.rs"]
mod real_tools;
