//! Handlers in JavaScript: each call in a realm of its own, on the engine's threads.

use std::sync::Arc;

use serde_json::Value;
use toolwright_engine::{self as engine, Limits, Program};

use crate::call::Call;
use crate::guard::Guard;
use crate::normalise::{Normalised, normalise};

pub(super) async fn run(call: &Arc<Call>, program: &Arc<Program>, args: Value) -> Normalised {
    let limits = Limits { deadline: call.deadline, ..call.runtime.limits().clone() };
    let running = call.runtime.engine().run(engine::Call {
        program: Arc::clone(program),
        args,
        context: call.context(),
        host: Arc::new(Guard(Arc::clone(call))),
        limits,
        cancel: call.cancel().clone(),
        now: call.now,
        seed: None,
    });
    normalise(running.await, call.spec().side_effects)
}
