//! Handlers in JavaScript: each call has a realm of its own, in a worker process.

use std::sync::Arc;

use serde_json::Value;
use toolwright_engine::{self as engine, Limits, Program};

use crate::host::CallHost;
use crate::invocation::Invocation;
use crate::normalise::{Normalised, normalise};

pub(super) async fn run(invocation: &Arc<Invocation>, program: &Arc<Program>, args: Value) -> Normalised {
    let limits = Limits { deadline: invocation.deadline, ..invocation.runtime.limits().clone() };
    let running = invocation.runtime.engine().run(engine::HandlerCall {
        program: Arc::clone(program),
        args,
        context: invocation.context(),
        host: Arc::new(CallHost(Arc::clone(invocation))),
        limits,
        cancel: invocation.cancel().clone(),
        now: invocation.now,
        seed: None,
    });
    normalise(running.await, invocation.spec().side_effects)
}
