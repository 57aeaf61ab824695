//! JSON-RPC messages before the library reads them: it takes the last of two members with one name, where other readers
//! take the first, so such a message is refused.

use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::error::Category;
use serde_json::{Deserializer, Value};
use toolwright_contract::arguments;

/// Refuses a message in which any object has a name twice. Text that is not JSON is left to the caller.
pub(super) fn check_names(text: &[u8]) -> Result<(), Box<JsonRpcError>> {
    match arguments::value(&mut Deserializer::from_slice(text)) {
        Err(error) if error.classify() == Category::Data => {
            let message = serde_json::from_slice(text).unwrap_or_default();
            let error = ErrorData::invalid_request(format!("Invalid message: {error}."), None);
            Err(Box::new(JsonRpcError::new(request_id(&message), error)))
        }
        _ => Ok(()),
    }
}

/// A message of the host. Empty lines and unknown notifications get no reply, so they are `None`.
pub(super) fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Box<JsonRpcError>> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    check_names(line)?;
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
