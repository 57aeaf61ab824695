//! A call as a model makes it.

use serde_json::{Map, Value};
use toolwright_contract::{ErrorKind, Failure, arguments};

/// One call, read from a provider's response. The orchestrator validates it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The provider's id. Some providers give none.
    pub id: Option<String>,
    /// Empty if the model named no tool: such a call is answered too.
    pub name: String,
    /// As the model wrote them; not validated against any schema.
    pub arguments: Result<Value, InvalidArguments>,
}

/// Arguments that are not JSON, or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidArguments {
    /// As the model wrote them.
    pub text: String,
    pub reason: String,
}

impl InvalidArguments {
    /// The failure that such a call gets.
    pub fn failure(&self) -> Failure {
        Failure::new(ErrorKind::Validation, format!("The arguments are not readable: {}", self.reason))
            .suggest("Call the tool again with arguments that are one JSON object.")
    }
}

impl Call {
    /// A call whose arguments are JSON, or a string that contains JSON.
    pub(crate) fn new(id: Option<&Value>, name: Option<&Value>, arguments: Option<&Value>) -> Self {
        let arguments = match arguments {
            // A tool without parameters is called with nothing, null or empty text.
            None | Some(Value::Null) => Ok(Value::Object(Map::new())),
            Some(Value::String(text)) => parse(text.clone()),
            Some(value) => Ok(value.clone()),
        };
        Self { id: text(id), name: text(name).unwrap_or_default(), arguments }
    }

    /// A call whose arguments were streamed as text.
    pub(crate) fn parsed(id: Option<String>, name: String, arguments: String) -> Self {
        Self { id, name, arguments: parse(arguments) }
    }

    /// A call whose arguments are incomplete.
    pub(crate) fn truncated(id: Option<String>, name: String, text: String) -> Self {
        let reason = "the response ended before the arguments did".to_owned();
        Self { id, name, arguments: Err(InvalidArguments { text, reason }) }
    }
}

/// A string that is not empty, or a number: ids of JSON-RPC may be numbers.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn parse(text: String) -> Result<Value, InvalidArguments> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    if let Err(reason) = arguments::check_integers(text.as_bytes()) {
        return Err(InvalidArguments { text, reason });
    }
    match serde_json::from_str(&text) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(value) => Ok(value),
        Err(error) => Err(InvalidArguments { text, reason: format!("not JSON: {error}") }),
    }
}
