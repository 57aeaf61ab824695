//! A JSON Schema 2020-12 validator that decides, fills in defaults and reports as Ajv 8 does with
//! `{allErrors: true, useDefaults: true}` and ajv-formats. A schema is compiled once; a check builds
//! nothing unless it fails or fills something in. Knows no files and no network.

mod bound;
mod compile;
mod equal;
mod error;
mod format;
mod leaf;
mod node;
mod number;
mod path;
pub(crate) mod pattern;
mod run;
mod sequence;

pub use error::{CompileError, Error};

use node::Arena;
use run::{Fill, Read, Run};
use serde_json::Value;

/// A compiled schema: immutable, to be shared between threads.
#[derive(Debug)]
pub struct Validator {
    arena: Arena,
}

impl Validator {
    /// Compiles a schema. Unknown keywords are ignored; the strict rules are the linter's.
    ///
    /// # Errors
    /// When a reference leads nowhere or a keyword's value is not what the keyword takes.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Self::compile_with(schema, &[])
    }

    /// Compiles a schema that may refer to other documents, given by their URIs.
    ///
    /// # Errors
    /// As [`Validator::compile`].
    pub fn compile_with(schema: &Value, others: &[(&str, &Value)]) -> Result<Self, CompileError> {
        compile::compile(schema, others).map(|arena| Self { arena })
    }

    /// Checks a value and fills in defaults, which stay even if the value then fails.
    ///
    /// # Errors
    /// Every violated keyword, in Ajv's order; at most a hundred.
    pub fn validate(&self, value: &mut Value) -> Result<(), Vec<Error>> {
        if !self.arena.has_defaults && self.is_valid(value) {
            return Ok(());
        }
        let mut run = Run::new(&self.arena);
        if run.root::<Fill>(value) { Ok(()) } else { Err(run.into_errors()) }
    }

    /// Decides only: fills in nothing and stops at the first failure.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        Run::new(&self.arena).root::<Read>(value)
    }
}
