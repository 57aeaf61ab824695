//! Runs tool handlers: JavaScript modules in worker processes, which can reach only what the caller passes to them. It
//! must not know tools, schemas or envelopes: a program, plain data and host functions go in, a JSON value or a typed
//! [`Failure`] comes out.
//!
//! A worker is a process of its own with one socket: no files, environment, network or other descriptors. It serves one
//! program, one call at a time, each in a new realm (a QuickJS runtime and context). A call that exceeds a limit
//! (memory, CPU time, stack, output, host calls) ends, by the interpreter or by the death of its process, without
//! affecting others.
//!
//! A handler has the language and the small part of the web's globals listed in `js/prelude.js`. It has no `eval` and
//! no `Function` constructor: the code that was built and checked is the code that runs.
mod call;
mod engine;
mod exchange;
mod failure;
mod message;
mod pool;
mod program;
mod spawner;
mod worker;

pub use call::{Cancel, FunctionKind, HandlerCall, Host, HostError, HostFunction, HostFuture, Level, Limits};
pub use engine::{Engine, Options};
pub use failure::{Failure, ToolErrorFields};
pub use program::{Program, Source};
pub use worker::{Confinement, confinement};

/// If this process was started as a worker, serves as one and never returns. A program that names itself as
/// [`Options::worker`] must call this first in `main`, before it starts threads.
pub fn run_if_worker() {
    if is_worker() {
        let ended = worker::run_spawner();
        std::process::exit(i32::from(ended.is_err()));
    }
}

/// Whether this process was started as a worker.
#[expect(clippy::disallowed_methods, reason = "a worker is recognized by the name that it was started with")]
fn is_worker() -> bool {
    std::env::args_os().next().is_some_and(|name| name == spawner::PROCESS_NAME)
}
