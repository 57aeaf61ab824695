//! Errors: of a validation, in the form of Ajv, and of a compilation.

use serde::Serialize;
use serde_json::Value;

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
