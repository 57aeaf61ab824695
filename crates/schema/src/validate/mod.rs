//! A JSON Schema 2020-12 validator that decides, fills in defaults and reports errors as Ajv 8 does with
//! `{allErrors: true, useDefaults: true}` and ajv-formats. A schema is compiled once. A validation allocates nothing
//! unless it fails or fills in a default.

pub(crate) mod bound;
mod compile;
mod compiled_schema;
mod equality;
mod leaf_schema;
mod member_order;
mod validation;

use compiled_schema::CompiledSchema;
use serde::Serialize;
use serde_json::Value;
use validation::{CheckOnly, FillAndCollect, Validation};

/// A compiled schema: immutable, to be shared between threads.
#[derive(Debug)]
pub struct Validator {
    schema: CompiledSchema,
}

impl Validator {
    /// Compiles a schema. Unknown keywords are ignored; strictness is the linter's task.
    ///
    /// # Errors
    /// When a reference does not resolve or a keyword's value has the wrong form.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Self::compile_with(schema, &[])
    }

    /// Compiles a schema that may refer to other documents, given by their URIs.
    ///
    /// # Errors
    /// As [`Validator::compile`].
    pub fn compile_with(schema: &Value, others: &[(&str, &Value)]) -> Result<Self, CompileError> {
        compile::compile(schema, others).map(|schema| Self { schema })
    }

    /// Validates a value and fills in defaults, which remain even if the value is invalid.
    ///
    /// # Errors
    /// Every violated keyword, in Ajv's order; at most a hundred.
    pub fn validate(&self, value: &mut Value) -> Result<(), Vec<ValidationError>> {
        if !self.schema.has_defaults && self.is_valid(value) {
            return Ok(());
        }
        let mut validation = Validation::new(&self.schema);
        if validation.run::<FillAndCollect>(value) { Ok(()) } else { Err(validation.into_errors()) }
    }

    /// Only decides: fills in nothing and stops at the first failure.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        Validation::new(&self.schema).run::<CheckOnly>(value)
    }
}

/// One violated keyword.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationError {
    pub instance_path: String,
    pub schema_path: String,
    pub keyword: &'static str,
    pub params: Value,
    pub message: String,
}

/// Why a schema cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    pub message: String,
}

impl CompileError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}
