//! Runs tool handlers: JavaScript modules inside this process, which can reach only what the caller passes to them.
//! It must not know tools, schemas or envelopes: a program, plain data and host functions go in, a JSON value or a typed
//! [`Failure`] comes out.
//!
//! Every call gets its own realm (a QuickJS runtime and context) in its initial state: after each call, all memory of the
//! realm is restored from a snapshot. A call that waits for the host holds no thread. A call that exceeds a limit (memory,
//! CPU time, stack, output, host calls) ends without affecting others.
//!
//! A handler has the language and the small part of the web's globals listed in `js/prelude.js`. It has no `eval` and
//! no `Function` constructor: the code that was built and checked is the code that runs.
mod arena;
mod binding;
mod bridge;
mod call;
mod control;
mod engine;
mod failure;
mod host;
mod host_call;
mod js_ref;
mod json_in;
mod json_out;
mod memory;
mod modules;
mod native;
mod pool;
mod prelude;
mod program;
mod raw;
mod realm;
mod spin;
mod task;
mod text;
mod thrown;
mod turn;
mod url_functions;
mod watcher;
mod worker;

pub use call::{Cancel, FunctionKind, HandlerCall, Host, HostError, HostFunction, HostFuture, Level, Limits};
pub use engine::{Engine, Options};
pub use failure::{Failure, ToolErrorFields};
pub use program::{Program, Source};
