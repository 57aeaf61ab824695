//! One test file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_contract::Mode;

/// A call with stubbed capabilities, and its expected envelope.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub args: Value,
    /// The tool's first allowed mode when absent.
    pub mode: Option<Mode>,
    #[serde(default)]
    pub session: Session,
    /// A fixed time for the handler; RFC 3339.
    pub now: Option<String>,
    /// Stubs by the capability's dotted name.
    #[serde(default)]
    pub capabilities: BTreeMap<String, Stub>,
    /// The expected members of the envelope; may contain matchers.
    pub expect: Map<String, Value>,
    /// The expected capability calls, in order. Not checked when absent.
    pub calls: Option<Vec<ExpectedCall>>,
}

/// The session as the handler sees it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Session {
    pub is_active: bool,
    pub state: Value,
}

impl Default for Session {
    fn default() -> Self {
        Self { is_active: true, state: Value::Object(Map::new()) }
    }
}

/// The result of a stubbed capability.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stub {
    Returns(Value),
    ReturnsEach(Vec<Value>),
    Throws(StubError),
}

/// The error that a stub throws.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StubError {
    pub code: String,
    #[serde(default)]
    pub message: String,
    #[serde(default, rename = "retryAfterMs")]
    pub retry_after_ms: Option<u32>,
}

/// An expected capability call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    pub capability: String,
    /// The single argument.
    pub with: Option<Value>,
    /// All arguments.
    pub with_all: Option<Vec<Value>>,
}

/// An invalid test file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not a valid test: {source}", path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error("{} stubs `{name}`, but there is no such capability", path.display())]
    UnknownCapability { path: PathBuf, name: String },
}

impl Case {
    /// Reads a test file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let case: Self = serde_json::from_str(&text)
            .map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
        match case.capabilities.keys().find(|name| crate::engine_functions::find(name).is_none()) {
            Some(name) => Err(Error::UnknownCapability { path: path.to_owned(), name: name.clone() }),
            None => Ok(case),
        }
    }
}
