//! What handlers may touch, each with its back ends: the network and the client of the session so far. Knowledge base,
//! calendar, images and text come behind the same face.
//!
//! It must not know tools, models or the JavaScript engine.

mod client;
mod fault;
pub mod http;
mod served;

pub use client::{Client, Delivery, Silent};
pub use fault::Fault;
pub use served::{Answer, Capabilities, Scope};
