//! What a server answers, as the outcome of a call.

use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};

/// Of one answer, counted as JSON text.
const MOST_BYTES: usize = 1 << 20;
/// Of what a server says about an error.
const LONGEST_MESSAGE: usize = 2000;

/// Structured content counts; without it, the text, and whatever else there is beside it.
pub(crate) fn outcome(result: CallToolResult, writes: bool) -> Result<Success, Failure> {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if result.is_error == Some(true) {
        let message = if text.is_empty() { "The tool failed." } else { &text };
        // What was done before it failed is not known.
        return Err(Failure {
            partial_side_effects: writes,
            ..Failure::new(ErrorKind::Permanent, cut(message))
        });
    }
    let others: Vec<Value> = result
        .content
        .iter()
        .filter(|block| !matches!(block, ContentBlock::Text(_)))
        .filter_map(|block| serde_json::to_value(block).ok())
        .collect();
    let data = match (result.structured_content, others.is_empty()) {
        (Some(structured), _) => structured,
        (None, true) => json!({ "text": text }),
        (None, false) => json!({ "text": text, "content": others }),
    };
    if data.to_string().len() > MOST_BYTES {
        return Err(Failure::new(ErrorKind::Permanent, "The tool's answer is too large."));
    }
    Ok(data.into())
}

/// A call that got no answer. Whether it took effect is not known once it was sent.
pub(crate) fn failure(error: &ServiceError, writes: bool) -> Failure {
    let lost = |message: &str| Failure {
        retryable: true,
        partial_side_effects: writes,
        ..Failure::new(ErrorKind::Transient, message)
    };
    match error {
        ServiceError::McpError(error) => {
            let message = format!("The server refused the call: {}", error.message);
            let never_began = matches!(error.code.0, -32601 | -32602);
            let failure = Failure::new(ErrorKind::Permanent, cut(&message));
            Failure { partial_side_effects: writes && !never_began, ..failure }
        }
        ServiceError::TransportSend(_) => {
            Failure { partial_side_effects: false, ..lost("The server cannot be reached.") }
        }
        ServiceError::InputRequiredRoundsExceeded { .. } => {
            Failure::new(ErrorKind::Permanent, "The server asks for more than a call can give.")
        }
        _ => lost("The connection to the server was lost during the call."),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
