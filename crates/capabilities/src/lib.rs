//! What handlers may touch, each with its back ends: the network and the client of the session are here; what has heavy
//! dependencies or keeps data comes from other crates, behind [`Capability`].
//!
//! It must not know tools, models or the JavaScript engine.

mod client;
mod embedder;
mod fault;
pub mod http;
pub mod images;
mod served;

pub use client::{Client, Delivery, Silent};
pub use embedder::Embedder;
pub use fault::Fault;
pub use served::{Answer, Answered, Asker, Capabilities, Capability, Scope};
