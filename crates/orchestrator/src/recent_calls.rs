//! Arguments and envelopes of the last calls of this process, for the console and `calls`. The store records only calls
//! that must not run twice; other calls, and refused ones, are here and in the audit log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use toolwright_contract::Envelope;

use crate::execution::Execution;
use crate::finish::ExecutionEnd;

/// How many calls are held.
const MAX_CALLS: usize = 512;
/// Approximate memory limits of all entries and of one entry. A larger envelope is dropped.
const MAX_BYTES: usize = 8 << 20;
const MAX_CALL_BYTES: usize = 2 << 20;
/// The size of a call beside its arguments and its data.
const CALL_BYTES: usize = 512;

#[derive(Default)]
pub(crate) struct RecentCalls(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    calls: VecDeque<RecentCall>,
    bytes: usize,
}

/// The arguments of a call and its envelope.
#[derive(Debug, Clone)]
pub(crate) struct RecentCall {
    session: String,
    execution: Arc<str>,
    event: &'static str,
    pub args: Option<Arc<str>>,
    pub envelope: Option<Arc<Envelope>>,
    bytes: usize,
}

impl RecentCalls {
    /// Adds a call that has ended. A replay is not added: its record is that of the first call.
    pub fn add(&self, execution: &Execution, end: ExecutionEnd, envelope: &Arc<Envelope>) {
        if !matches!(
            end,
            ExecutionEnd::Ran | ExecutionEnd::Queued | ExecutionEnd::Refused | ExecutionEnd::Described
        ) || execution.is_test()
        {
            return;
        }
        let args = execution.recorded_args.clone().or_else(|| execution.redacted_args_text());
        let size = match &envelope.outcome {
            Ok(success) => text_bytes(&success.data, MAX_CALL_BYTES),
            Err(failure) => {
                failure.message.len()
                    + failure.details.as_ref().map_or(0, |details| text_bytes(details, MAX_CALL_BYTES))
            }
        };
        let is_held = size < MAX_CALL_BYTES;
        let envelope = is_held.then(|| Arc::clone(envelope));
        let bytes = CALL_BYTES + args.as_ref().map_or(0, |args| args.len()) + if is_held { size } else { 0 };
        let call = RecentCall {
            session: execution.session.id.clone(),
            execution: Arc::clone(&execution.id),
            event: end.event(),
            args,
            envelope,
            bytes,
        };
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.bytes += bytes;
        ring.calls.push_back(call);
        while ring.calls.len() > MAX_CALLS || ring.bytes > MAX_BYTES {
            let Some(oldest) = ring.calls.pop_front() else { break };
            ring.bytes -= oldest.bytes;
        }
    }

    /// The latest call with this id and end.
    pub fn find(&self, session: &str, execution: &str, event: &str) -> Option<RecentCall> {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |call: &&RecentCall| {
            *call.execution == *execution && call.session == session && call.event == event
        };
        ring.calls.iter().rev().find(is_wanted).cloned()
    }
}

/// The approximate size of a value, counted up to a limit.
fn text_bytes(value: &Value, limit: usize) -> usize {
    let mut bytes = std::mem::size_of::<Value>();
    match value {
        Value::String(text) => bytes += text.len(),
        Value::Array(items) => {
            for item in items {
                bytes += text_bytes(item, limit);
                if bytes >= limit {
                    break;
                }
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                bytes += name.len() + text_bytes(member, limit);
                if bytes >= limit {
                    break;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    bytes
}
