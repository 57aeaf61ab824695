//! JSON Schema 2020-12 as Ajv decides it: lint, validation, defaults, formats. Knows no tools and no files.

mod class_sequence;
#[cfg(test)]
#[path = "../tests/schema/corpora.rs"]
mod corpora;
mod format;
mod keyword;
mod lint;
mod number;
mod pattern;
pub mod pointer;
mod reference;
mod subschemas;
mod types;
mod uri;
mod validate;
mod value_problem;

pub use format::is_known_format;
pub use lint::{Problem, lint};
pub use number::compare as compare_numbers;
pub use pattern::is_supported_pattern;
pub use subschemas::{visit_subschemas, visit_subschemas_mut};
pub use validate::{CompileError, ValidationError, Validator};
pub use value_problem::{ValueProblem, invalid_defaults, value_problems};
