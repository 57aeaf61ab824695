//! Keeps the whole numbers in a server's results exact: those beyond 64 bits become strings before the message is
//! parsed, since parsing would round them.

use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;
use toolwright_contract::arguments::quote_long_integers;

/// Parses a message.
pub(crate) fn parse_message(text: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
    match exact_message(text) {
        Some(exact) => serde_json::from_str(&exact),
        None => serde_json::from_slice(text),
    }
}

/// The message with such numbers replaced, if it is the result of a call. Definitions of tools are left unchanged: in
/// a schema, a string is not a limit.
pub(crate) fn exact_message(text: &[u8]) -> Option<String> {
    let quoted = quote_long_integers(std::str::from_utf8(text).ok()?)?;
    let mut message: Value = serde_json::from_slice(text).ok()?;
    let mut quoted: Value = serde_json::from_str(&quoted).ok()?;
    let result = message.get_mut("result")?;
    if result.get("content").is_none() && result.get("structuredContent").is_none() {
        return None;
    }
    *result = quoted.get_mut("result")?.take();
    Some(message.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_numbers_of_a_call_result_become_strings_and_those_of_a_listing_stay() {
        let call = br#"{"id":1,"result":{"content":[],"structuredContent":{"a":123456789012345678901,"b":18446744073709551615}}}"#;
        let exact: Value = serde_json::from_str(&exact_message(call).unwrap()).unwrap();
        let expected = json!({ "a": "123456789012345678901", "b": 18_446_744_073_709_551_615_u64 });
        assert_eq!(exact["result"]["structuredContent"], expected);
        for other in [
            &br#"{"id":1,"result":{"tools":[{"inputSchema":{"maximum":123456789012345678901}}]}}"#[..],
            br#"{"id":1,"result":{"content":[],"structuredContent":{"a":18446744073709551615,"b":1e30}}}"#,
            b"\xff 123456789012345678901",
        ] {
            assert_eq!(exact_message(other), None);
        }
    }
}
