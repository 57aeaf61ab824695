//! The functions of `context.text`, called as a handler calls them.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "text/adversarial.rs"]
mod adversarial;
#[path = "text/contacts.rs"]
mod contacts;
#[path = "text/dates.rs"]
mod dates;
#[path = "text/emails.rs"]
mod emails;

use std::time::{Duration, Instant};

use serde_json::Value;
use toolwright_capabilities::{CallIdentity, Capability, CapabilityError};
use toolwright_text::Text;

/// Calls a function and returns its value.
async fn call(function: &str, args: Vec<Value>) -> Result<Value, CapabilityError> {
    let asker = CallIdentity {
        tool: "tool",
        execution_id: "call",
        client_id: "client",
        session: None,
        user: "user",
        org: None,
        roles: &[],
        deadline: Instant::now() + Duration::from_secs(30),
        now: None,
    };
    Text.call(&asker, function, args).await.map(|answered| answered.value)
}

#[tokio::test]
async fn an_unknown_function_is_an_error() {
    assert_eq!(call("translate", vec![]).await.unwrap_err().code, "NOT_CONFIGURED");
}
