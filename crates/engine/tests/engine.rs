//! The public API of the engine: programs in, values or typed failures out.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/case.rs"]
mod case;
#[path = "support/mod.rs"]
mod support;

#[path = "engine/concurrency.rs"]
mod concurrency;
#[path = "engine/error_types.rs"]
mod error_types;
#[path = "engine/globals.rs"]
mod globals;
#[path = "engine/isolation.rs"]
mod isolation;
#[path = "engine/limits.rs"]
mod limits;
#[path = "engine/recycling.rs"]
mod recycling;
#[path = "engine/reference.rs"]
mod reference;
#[path = "engine/results.rs"]
mod results;
