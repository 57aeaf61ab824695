//! A call as a model asked for it.

use serde_json::{Map, Value};
use toolwright_contract::{ErrorKind, Failure};

/// One call, read from a provider's response. It is validated by whoever runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The provider's id. Some providers give none.
    pub id: Option<String>,
    /// Empty when the model named no tool: such a call is to be answered too.
    pub name: String,
    /// What the model wrote; not yet held against any schema.
    pub arguments: Result<Value, Unreadable>,
}

/// Arguments that are not JSON, or not all there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unreadable {
    /// What the model wrote.
    pub text: String,
    pub why: String,
}

impl Unreadable {
    /// The answer that such a call gets.
    pub fn failure(&self) -> Failure {
        Failure::new(ErrorKind::Validation, format!("The arguments are not readable: {}", self.why))
            .suggest("Call the tool again with arguments that are one JSON object.")
    }
}

impl Call {
    /// A call whose arguments are JSON already, or text that holds JSON.
    pub(crate) fn new(id: Option<&Value>, name: Option<&Value>, arguments: Option<&Value>) -> Self {
        Self { id: text(id), name: text(name).unwrap_or_default(), arguments: given(arguments) }
    }

    /// A call whose arguments came as text.
    pub(crate) fn parsed(id: Option<String>, name: String, arguments: String) -> Self {
        Self { id, name, arguments: parse(arguments) }
    }

    /// A call that never came to its end, so that nobody knows what was meant.
    pub(crate) fn truncated(id: Option<String>, name: String, text: String) -> Self {
        let why = "the response ended before the arguments did".to_owned();
        Self { id, name, arguments: Err(Unreadable { text, why }) }
    }
}

/// A string that is not empty. JSON-RPC has numbers as ids.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A tool without parameters is called with nothing, null or empty text.
fn given(arguments: Option<&Value>) -> Result<Value, Unreadable> {
    match arguments {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(Value::String(text)) => parse(text.clone()),
        Some(value) => Ok(value.clone()),
    }
}

fn parse(text: String) -> Result<Value, Unreadable> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(&text) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(value) => Ok(value),
        Err(error) => Err(Unreadable { text, why: format!("not JSON: {error}") }),
    }
}
