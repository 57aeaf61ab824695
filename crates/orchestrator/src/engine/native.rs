//! Handlers in Rust: an async function that was registered under a name. It is trusted as the program itself is: it
//! runs on the caller's runtime, and only its time is limited. A panic ends the call, not the program.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use toolwright_contract::{Failure, Success};

use super::within;
use crate::call::Call;
use crate::context::Context;
use crate::normalise::Normalised;

type Running = Pin<Box<dyn Future<Output = Result<Success, Failure>> + Send>>;

/// A registered function.
pub(crate) type Handler = Arc<dyn Fn(Value, Context) -> Running + Send + Sync>;

/// Gives an async function the one form that all of them have.
pub(crate) fn handler<F, R>(function: F) -> Handler
where
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Success, Failure>> + Send + 'static,
{
    Arc::new(move |args, context| Box::pin(function(args, context)))
}

pub(super) async fn run(call: &Arc<Call>, handler: &Handler, args: Value) -> Normalised {
    let context = Context(Arc::clone(call));
    let Ok(mut running) = catch_unwind(AssertUnwindSafe(|| handler(args, context))) else {
        return panicked();
    };
    let mut guarded =
        poll_fn(|wakeup| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(wakeup))) {
            Ok(poll) => poll.map(|outcome| Normalised { outcome, detail: None }),
            Err(_) => Poll::Ready(panicked()),
        });
    // Many are done at once: those need no clock.
    if let Poll::Ready(done) = poll_fn(|wakeup| Poll::Ready(Pin::new(&mut guarded).poll(wakeup))).await {
        return done;
    }
    within(call, guarded).await.unwrap_or_else(|stopped| stopped)
}

fn panicked() -> Normalised {
    let failure = Failure::unforeseen("The tool failed unexpectedly.");
    Normalised { outcome: Err(failure), detail: Some("the native handler panicked".to_owned()) }
}
