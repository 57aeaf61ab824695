//! Handlers in JavaScript: each call has a realm of its own, in a worker process.

use std::sync::Arc;

use serde_json::Value;
use toolwright_engine::{self as engine, Limits, Program};

use crate::handler_outcome::{HandlerOutcome, normalise};
use crate::host::CallHost;
use crate::invocation::Invocation;

pub(super) async fn run(invocation: &Arc<Invocation>, program: &Arc<Program>, args: Value) -> HandlerOutcome {
    let limits = Limits { deadline: invocation.deadline, ..invocation.runtime.limits().clone() };
    let running = invocation.runtime.engine().run(engine::HandlerCall {
        program: Arc::clone(program),
        args,
        context: invocation.context(),
        host: Arc::new(CallHost(Arc::clone(invocation))),
        limits: limits.clone(),
        cancel: invocation.cancel().clone(),
        now: invocation.now,
        seed: None,
    });
    let result = running.await;
    let cause = match &result {
        Err(engine::Failure::Thrown { tool_error: None, code, .. }) => {
            invocation.effects().capability_calls.cause_of(code.as_deref(), invocation.spec())
        }
        _ => None,
    };
    let normalised = normalise(result, invocation.spec().side_effects, &limits);
    match cause {
        Some(failure) => HandlerOutcome { outcome: Err(failure), ..normalised },
        None => normalised,
    }
}
