//! Converts the result of an MCP call to a success or failure of the contract.

use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};

/// The limit of one result, as JSON text.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// The length to which error messages of a server are truncated.
const MAX_MESSAGE_CHARS: usize = 2000;

/// Uses the structured content; without it, the text and all other content blocks.
pub(crate) fn convert_result(result: CallToolResult, writes: bool) -> Result<Success, Failure> {
    let (mut texts, mut others) = (Vec::new(), Vec::<Value>::new());
    for block in &result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text.as_str()),
            other => others.extend(serde_json::to_value(other)),
        }
    }
    let text = texts.join("\n");
    if result.is_error == Some(true) {
        let message = if text.is_empty() { "The tool failed." } else { &text };
        // The tool may have changed something before it failed.
        return Err(Failure {
            partial_side_effects: writes,
            ..Failure::new(ErrorKind::Permanent, truncate(message))
        });
    }
    let data = match (result.structured_content, others.is_empty()) {
        (Some(structured), _) => structured,
        (None, true) => json!({ "text": text }),
        (None, false) => json!({ "text": text, "content": others }),
    };
    if data.to_string().len() > MAX_RESULT_BYTES {
        let message = format!("The tool's result is larger than the limit of {MAX_RESULT_BYTES} bytes.");
        return Err(Failure { partial_side_effects: writes, ..Failure::new(ErrorKind::Permanent, message) });
    }
    Ok(data.into())
}

/// Converts the error of a call without a result. Once the call was sent, side effects are possible.
pub(crate) fn convert_error(error: &ServiceError, writes: bool) -> Failure {
    let transient = |message: &str, partial_side_effects| Failure {
        retryable: true,
        partial_side_effects,
        ..Failure::new(ErrorKind::Transient, message)
    };
    match error {
        ServiceError::McpError(error) => {
            let message = format!("The server rejected the call: {}", error.message);
            // Unknown method and invalid parameters: the call was not executed.
            let was_executed = !matches!(error.code.0, -32601 | -32602);
            let failure = Failure::new(ErrorKind::Permanent, truncate(&message));
            Failure { partial_side_effects: writes && was_executed, ..failure }
        }
        ServiceError::InputRequiredRoundsExceeded { .. } => {
            Failure::new(ErrorKind::Permanent, "The server asks for more input; that is not supported.")
        }
        // Also when sending failed: the request may have arrived before the connection broke.
        _ => transient("The connection to the server was lost during the call.", writes),
    }
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
