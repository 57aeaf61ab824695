//! The public API of the engine: programs in, values or typed failures out.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/case.rs"]
mod case;
#[path = "support/processes.rs"]
mod processes;
#[path = "support/mod.rs"]
mod support;

#[path = "engine/concurrency.rs"]
mod concurrency;
#[cfg(target_os = "linux")]
#[path = "engine/confinement.rs"]
mod confinement;
#[path = "engine/error_types.rs"]
mod error_types;
#[path = "engine/globals.rs"]
mod globals;
#[path = "engine/isolation.rs"]
mod isolation;
#[path = "engine/limits.rs"]
mod limits;
#[cfg(target_os = "linux")]
#[path = "engine/native_code.rs"]
mod native_code;
#[path = "engine/recycling.rs"]
mod recycling;
#[path = "engine/reference.rs"]
mod reference;
#[path = "engine/results.rs"]
mod results;
