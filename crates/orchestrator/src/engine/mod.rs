//! The engines that run handlers, one variant each. Each returns an outcome for the envelope and a detail for the log.

pub(crate) mod http;
mod javascript;
pub(crate) mod native;

use std::sync::Arc;

use serde_json::Value;
use toolwright_contract::Success;
use toolwright_engine::{Failure, Program};

use crate::handler_outcome::{HandlerOutcome, normalise};
use crate::invocation::Invocation;

/// The code of a tool.
pub(crate) enum Handler {
    /// `handler.js`, in its sandbox.
    JavaScript(Arc<Program>),
    /// A Rust function that was registered by name.
    Native(native::Handler),
    /// A declared HTTP request.
    Http(Box<http::Request>),
    /// A declared constant result.
    Mock(Arc<Value>),
}

impl Handler {
    /// Whether it holds a seat while it runs: a worker process, or a connection. Mocks and native functions do not.
    pub fn needs_seat(&self) -> bool {
        matches!(self, Self::JavaScript(_) | Self::Http(_))
    }
}

/// Waits for a handler until the call is cancelled or its deadline passes.
async fn run_until_deadline<T>(
    invocation: &Invocation,
    work: impl Future<Output = T>,
) -> Result<T, HandlerOutcome> {
    let (effects, limits) = (invocation.spec().side_effects, invocation.runtime.limits());
    let stopped = |failure| Err(normalise(Err(failure), effects, limits));
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = invocation.cancel().cancelled() => stopped(Failure::Cancelled),
        () = tokio::time::sleep_until(invocation.deadline.into()) => stopped(Failure::Deadline),
    }
}

/// Runs the call's handler with validated arguments.
pub(crate) async fn run(invocation: &Arc<Invocation>, args: Value) -> HandlerOutcome {
    match &invocation.prepared.handler {
        Handler::JavaScript(program) => javascript::run(invocation, program, args).await,
        Handler::Native(handler) => native::run(invocation, handler, args).await,
        Handler::Http(request) => Box::pin(http::run(invocation, request, args)).await,
        Handler::Mock(value) => {
            let data = Arc::clone(value);
            HandlerOutcome { outcome: Ok(Success { data, intents: Vec::new() }), detail: None }
        }
    }
}
