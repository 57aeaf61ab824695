//! What runs a handler: one arm an engine. All give the same: an outcome for the envelope, and a detail for the log.

pub(crate) mod http;
mod javascript;
pub(crate) mod native;

use std::sync::Arc;

use serde_json::Value;
use toolwright_contract::Success;
use toolwright_engine::{Failure, Program};

use crate::call::Call;
use crate::normalise::{Normalised, normalise};

/// The code of a tool.
pub(crate) enum Handler {
    /// `handler.js`, in its sandbox.
    JavaScript(Arc<Program>),
    /// A Rust function that was registered by name.
    Native(native::Handler),
    /// A request, from a declaration.
    Http(Box<http::Request>),
    /// A fixed answer, from a declaration.
    Mock(Arc<Value>),
}

/// Waits for a handler's work until the call is cancelled or its time is over.
async fn within<T>(call: &Call, work: impl Future<Output = T>) -> Result<T, Normalised> {
    let stopped = |failure| Err(normalise(Err(failure), call.spec().side_effects));
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = call.cancel().cancelled() => stopped(Failure::Cancelled),
        () = tokio::time::sleep_until(call.deadline.into()) => stopped(Failure::Deadline),
    }
}

/// Runs the call's handler with validated arguments.
pub(crate) async fn run(call: &Arc<Call>, args: Value) -> Normalised {
    match &call.prepared.handler {
        Handler::JavaScript(program) => javascript::run(call, program, args).await,
        Handler::Native(handler) => native::run(call, handler, args).await,
        Handler::Http(request) => Box::pin(http::run(call, request, args)).await,
        Handler::Mock(value) => {
            let data = Arc::clone(value);
            Normalised { outcome: Ok(Success { data, intents: Vec::new() }), detail: None }
        }
    }
}
