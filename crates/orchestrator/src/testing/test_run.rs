//! Runs one test and reports the differences.

use std::sync::Arc;

use serde_json::Value;
use toolwright_contract::Mode;

use super::case::{Case, ExpectedCall};
use super::matcher::{members, mismatch};
use super::stub::StubHost;
use crate::orchestrator::Orchestrator;
use crate::request::{CallRequest, ToolCall};
use crate::session::NewSession;
use crate::store::SessionStatus;

/// The result of one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub name: String,
    /// Why it failed; empty when it passed.
    pub differences: Vec<String>,
    pub envelope: Value,
    /// The handler's `console` lines, and the reason of its failure, each with its level.
    pub log: Vec<String>,
}

impl Report {
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Calls the tool's real handler with the test's stubs, and compares the envelope.
pub async fn run(orchestrator: &Orchestrator, tool_id: &str, case: &Case) -> Report {
    let mut differences = Vec::new();
    let host = Arc::new(StubHost::new(case.capabilities.clone()));
    let mut request = request(orchestrator, tool_id, case).host(host.clone());
    if let Some(now) = &case.now {
        match chrono::DateTime::parse_from_rfc3339(now) {
            Ok(now) => request = request.now(now.timestamp_millis()),
            Err(error) => differences.push(format!("`now` is not an RFC 3339 time: {error}")),
        }
    }
    let envelope = orchestrator.call(request).await;
    let envelope = serde_json::to_value(&*envelope).unwrap_or_default();
    if let Some(actual) = envelope.as_object() {
        differences.extend(members(&case.expect, actual, "envelope"));
    }
    if let Some(expected) = &case.calls {
        differences.extend(compare_calls(expected, &host.calls()));
    }
    Report { name: case.name.clone(), differences, envelope, log: host.log() }
}

/// The test's call, in a session with the test's state.
fn request(orchestrator: &Orchestrator, tool_id: &str, case: &Case) -> CallRequest {
    let (runtime, toolset) = orchestrator.current_version();
    let tool = runtime.toolset().get(tool_id);
    let first_mode = tool.and_then(|tool| tool.spec.allowed_modes.first().copied());
    let mode = case.mode.or(first_mode).unwrap_or(Mode::Text);
    let mut session = NewSession::new("test-client", mode).record(toolset, orchestrator.0.clock.now(), 0);
    session.state = case.session.state.clone();
    if !case.session.is_active {
        session.status = SessionStatus::Ended;
    }
    let id = Some("test-call".to_owned());
    let call = ToolCall { id, tool: tool_id.to_owned(), args: case.args.clone() };
    CallRequest::new(Arc::new(session), call)
}

fn compare_calls(expected: &[ExpectedCall], actual: &[(String, Vec<Value>)]) -> Option<String> {
    let expected_paths: Vec<&str> = expected.iter().map(|call| call.capability.as_str()).collect();
    let actual_paths: Vec<&str> = actual.iter().map(|(path, _)| path.as_str()).collect();
    if expected_paths != actual_paths {
        return Some(format!("the capability calls are {actual_paths:?}, not {expected_paths:?}"));
    }
    let mut pairs = expected.iter().zip(actual).enumerate();
    pairs.find_map(|(index, (expected, (path, args)))| {
        let place = format!("calls[{index}] {path}");
        let only = args.first().cloned().unwrap_or(Value::Null);
        let with = expected.with.as_ref().and_then(|with| mismatch(with, &only, &place));
        let all = expected.with_all.as_ref();
        with.or_else(|| {
            all.and_then(|all| mismatch(&Value::Array(all.clone()), &Value::Array(args.clone()), &place))
        })
    })
}
