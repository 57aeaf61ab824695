//! Runs one test and says what differs.

use std::sync::Arc;

use serde_json::Value;

use super::case::{Case, ExpectedCall};
use super::matcher::{members, mismatch};
use super::stub::StubHost;
use crate::request::{Request, Session};
use crate::runtime::Runtime;

/// What came of one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub name: String,
    /// Why it failed; empty when it passed.
    pub differences: Vec<String>,
    /// What the call came to.
    pub envelope: Value,
}

impl Report {
    /// True when nothing differs.
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Calls the tool as the test says, with its real handler, and compares.
pub async fn run(runtime: &Runtime, tool_id: &str, case: &Case) -> Report {
    let tool = runtime.toolset().get(tool_id);
    let first = tool.and_then(|tool| tool.spec.allowed_modes.first().copied());
    let mode = case.mode.or(first).unwrap_or(toolwright_contract::Mode::Text);
    let mut differences = Vec::new();
    let now = case.now.as_deref().and_then(|now| match chrono::DateTime::parse_from_rfc3339(now) {
        Ok(now) => Some(now.timestamp_millis()),
        Err(error) => {
            differences.push(format!("`now` is not a time: {error}"));
            None
        }
    });
    let host = Arc::new(StubHost::new(case.capabilities.clone()));
    let session = Session {
        is_active: case.session.is_active,
        state: case.session.state.clone(),
        ..Session::new("test-client", mode)
    };
    let mut request = Request::new(tool_id, case.args.clone(), Arc::new(session));
    request.execution_id = "test-call".to_owned();
    request.now = now;
    let envelope = runtime.execute_with(request, host.clone()).await;
    let envelope = serde_json::to_value(&envelope).unwrap_or_default();
    if let Some(actual) = envelope.as_object() {
        differences.extend(members(&case.expect, actual, "envelope"));
    }
    if let Some(expected) = &case.calls {
        differences.extend(compare_calls(expected, &host.calls()));
    }
    Report { name: case.name.clone(), differences, envelope }
}

fn compare_calls(expected: &[ExpectedCall], actual: &[(String, Vec<Value>)]) -> Option<String> {
    let wanted: Vec<&str> = expected.iter().map(|call| call.capability.as_str()).collect();
    let made: Vec<&str> = actual.iter().map(|(path, _)| path.as_str()).collect();
    if wanted != made {
        return Some(format!("the capability calls are {made:?}, not {wanted:?}"));
    }
    let mut pairs = expected.iter().zip(actual).enumerate();
    pairs.find_map(|(at, (expected, (path, args)))| {
        let place = format!("calls[{at}] {path}");
        let only = args.first().cloned().unwrap_or(Value::Null);
        let with = expected.with.as_ref().and_then(|with| mismatch(with, &only, &place));
        let all = expected.with_all.as_ref();
        with.or_else(|| {
            all.and_then(|all| mismatch(&Value::Array(all.clone()), &Value::Array(args.clone()), &place))
        })
    })
}
