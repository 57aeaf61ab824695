//! JSON Schema: the strict linter, shared definitions, defaults and validation.

mod defaults;
mod lint;
mod misfit;
mod shared;
mod subschemas;
mod validate;

pub use defaults::refused_defaults;
pub use lint::{Problem, known_formats, lint};
pub use misfit::{Misfit, known_properties, misfits};
pub use shared::{Bundled, Shared, bundle};
pub(crate) use subschemas::visit;
pub use validate::{CompileError, Error as ValidationError, Validator};
