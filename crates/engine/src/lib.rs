//! Runs tool handlers: JavaScript modules, inside this process, with no authority but what the caller hands them.
//! Knows nothing of tools, schemas or envelopes: a program, plain data and host functions go in, a JSON value or a
//! typed [`Failure`] comes out.
//!
//! Every call gets a realm (an engine runtime and context) of its own and finds it untouched: all memory of a realm is
//! put back, bit by bit, to a snapshot from before its first call. A call that waits for the host holds no thread.
//! Limits on memory, CPU time, stack, output and host calls end one call and nothing else.
//!
//! A handler has the language and the small part of the web's globals listed in `js/prelude.js`. It has no `eval` and
//! no `Function` constructor: the code that was built and checked is the code that runs.
mod address;
mod arena;
mod binding;
mod bridge;
mod call;
mod control;
mod engine;
mod failure;
mod held;
mod host_call;
mod json_in;
mod json_out;
mod luck;
mod memory;
mod modules;
mod native;
mod pool;
mod prelude;
mod program;
mod raw;
mod realm;
mod side;
mod task;
mod text;
mod thrown;
mod turn;
mod watcher;
mod worker;

pub use call::{Call, Cancel, Function, Host, HostError, HostFuture, Kind, Level, Limits};
pub use engine::{Engine, Options};
pub use failure::{Failure, ToolErrorFields};
pub use program::{Program, Source};
