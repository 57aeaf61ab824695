//! The worker processes: a spawner that forks them, and what runs inside each. A worker is single-threaded and serves
//! one call at a time; everything that it needs from outside is a message to the server.
mod bridge;
mod compile;
mod connection;
mod cpu_clock;
mod cpu_time;
mod handler_run;
mod host_call;
mod json_in;
mod json_out;
mod memory;
mod modules;
mod native;
mod prelude;
mod process;
mod realm;
mod rquickjs_unsafe;
mod sandbox;
mod spawner_loop;
mod text;
mod thrown_value;
mod url_functions;
mod worker_loop;

pub use sandbox::{Confinement, confinement};
pub(crate) use spawner_loop::run as run_spawner;
