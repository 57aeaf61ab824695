//! JSON-RPC messages, checked before the library (rmcp) reads them. Refuses messages that it would misread: duplicate
//! names (the last wins), arrays in place of objects, and integers beyond 64 bits.

use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::error::Category;
use serde_json::{Deserializer, Value};
use toolwright_contract::arguments;

/// The members of `params`, and of its `_meta`, that are objects.
const OBJECTS: [&str; 9] = [
    "_meta",
    "arguments",
    "capabilities",
    "clientInfo",
    "context",
    "argument",
    "ref",
    "io.modelcontextprotocol/clientInfo",
    CLIENT_CAPABILITIES,
];
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Refuses a message that readers could understand differently. Text that is not JSON is left to the caller.
pub(super) fn check(text: &[u8]) -> Result<(), Box<JsonRpcError>> {
    let problem = match arguments::value(&mut Deserializer::from_slice(text)) {
        Err(error) if error.classify() == Category::Data => Some(error.to_string()),
        Err(_) => None,
        Ok(message) => array_for_object(&message).or_else(|| arguments::check_integers(text).err()),
    };
    let Some(problem) = problem else { return Ok(()) };
    let message = serde_json::from_slice(text).unwrap_or_default();
    let error = ErrorData::invalid_request(format!("Invalid message: {problem}."), None);
    Err(Box::new(JsonRpcError::new(request_id(&message), error)))
}

/// Names the member that is an array where an object belongs.
fn array_for_object(message: &Value) -> Option<String> {
    if message.is_array() {
        return Some("it must be an object, not an array".to_owned());
    }
    let params = message.get("params")?;
    let meta = params.get("_meta").into_iter();
    let members = [params].into_iter().chain(meta).filter_map(Value::as_object).flatten();
    let mut objects = members.filter(|(name, _)| OBJECTS.contains(&name.as_str()));
    let wrong = if params.is_array() {
        Some("params")
    } else {
        objects.find_map(|(name, value)| {
            let is_capabilities = name == "capabilities" || name == CLIENT_CAPABILITIES;
            let in_capabilities = || array_in_capabilities(value).filter(|_| is_capabilities);
            if value.is_array() { Some(name.as_str()) } else { in_capabilities() }
        })
    };
    wrong.map(|name| format!("`{name}` must be an object, not an array"))
}

/// Names the capability, or the part of one, that is an array.
pub(super) fn array_in_capabilities(capabilities: &Value) -> Option<&str> {
    let parts = members(capabilities).flat_map(|(_, capability)| members(capability));
    let mut all = members(capabilities).chain(parts);
    all.find(|(_, value)| value.is_array()).map(|(name, _)| name.as_str())
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A message of the MCP host. Empty lines and unknown notifications get no reply, so they are `None`.
pub(super) fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Box<JsonRpcError>> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    check(line)?;
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        let error = ErrorData::parse_error(format!("The line is not JSON: {error}."), None);
        return Err(Box::new(JsonRpcError::new(None, error)));
    };
    if message.get("method").is_some() && message.get("id").is_none() {
        return Ok(None);
    }
    let error = ErrorData::invalid_request("The line is not an MCP message.", None);
    Err(Box::new(JsonRpcError::new(request_id(&message), error)))
}

fn request_id(message: &Value) -> Option<RequestId> {
    message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok())
}
