//! Handlers in Rust: async functions that are registered by name. They are trusted: they run on the caller's runtime,
//! and only their time is limited. A panic ends the call, not the program.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use toolwright_contract::{ErrorKind, Failure, Success};

use super::run_until_deadline;
use crate::context::Context;
use crate::handler_outcome::HandlerOutcome;
use crate::invocation::Invocation;

type Running = Pin<Box<dyn Future<Output = Result<Success, Failure>> + Send>>;

/// A registered function.
pub(crate) type Handler = Arc<dyn Fn(Value, Context) -> Running + Send + Sync>;

/// Boxes an async function as a handler.
pub(crate) fn handler<F, R>(function: F) -> Handler
where
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Success, Failure>> + Send + 'static,
{
    Arc::new(move |args, context| Box::pin(function(args, context)))
}

pub(super) async fn run(invocation: &Arc<Invocation>, handler: &Handler, args: Value) -> HandlerOutcome {
    let context = Context(Arc::clone(invocation));
    let Ok(running) = catch_unwind(AssertUnwindSafe(|| handler(args, context))) else {
        return panicked(invocation);
    };
    match run_until_deadline(invocation, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok(outcome)) => HandlerOutcome { outcome, detail: None },
        Ok(Err(_)) => panicked(invocation),
        Err(stopped) => stopped,
    }
}

fn panicked(invocation: &Invocation) -> HandlerOutcome {
    let failure = Failure::new(ErrorKind::Internal, "The tool failed unexpectedly.");
    let failure = Failure { partial_side_effects: invocation.writes(), ..failure };
    HandlerOutcome { outcome: Err(failure), detail: Some("the native handler panicked".to_owned()) }
}
