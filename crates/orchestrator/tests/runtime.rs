//! Handlers of all engines: a call in, a whole envelope out.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "runtime/support.rs"]
mod support;

#[path = "runtime/capabilities.rs"]
mod capabilities;
#[path = "runtime/composition.rs"]
mod composition;
#[path = "runtime/concurrency.rs"]
mod concurrency;
#[path = "runtime/deploys.rs"]
mod deploys;
#[path = "runtime/envelopes.rs"]
mod envelopes;
#[path = "runtime/handlers.rs"]
mod handlers;
#[path = "runtime/hostile.rs"]
mod hostile;
#[path = "runtime/native.rs"]
mod native;
#[path = "runtime/requests.rs"]
mod requests;
