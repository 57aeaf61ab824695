//! JSON Schema: the strict linter, shared definitions, defaults and validation.

mod defaults;
mod formats;
mod lint;
mod shared;
mod subschemas;
mod validator;

pub use defaults::{fill_defaults, refused_defaults};
pub use lint::{Problem, known_formats, lint};
pub use shared::{Bundled, Shared, bundle};
pub use validator::{Misfit, Validator, compile};
