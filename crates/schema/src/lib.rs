//! JSON Schema 2020-12 as Ajv decides it: lint, validation, defaults, formats. Knows no tools and no files.

#[cfg(test)]
mod corpora;
mod defaults;
mod lint;
mod misfit;
pub mod pointer;
mod subschemas;
mod validate;

pub use defaults::refused_defaults;
pub use lint::{Problem, known_formats, lint};
pub use misfit::{Misfit, known_properties, misfits};
pub use subschemas::{visit, visit_mut};
pub use validate::{CompileError, Error as ValidationError, Validator};
