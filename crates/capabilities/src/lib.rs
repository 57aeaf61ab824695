//! The capabilities of handlers. The HTTP client, the image generator and the client of the session are implemented
//! here. Capabilities with heavy dependencies or data of their own live in other crates, behind [`Capability`].
//!
//! It must not know tools, models or the JavaScript engine.

mod capability;
mod embedder;
mod error;
pub mod http;
pub mod images;
mod secret;
mod session_client;

pub use capability::{
    CallIdentity, CallResources, Capabilities, Capability, CapabilityFuture, CapabilityOutput,
};
pub use embedder::Embedder;
pub use error::{CapabilityError, Result, error_chain, retry_after_ms};
pub use secret::Secret;
pub use session_client::{Client, NoClient, SendFuture};
