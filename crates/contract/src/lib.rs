//! The types that all layers share: what a tool declares, the result of a call, the intents of a handler.
//!
//! Plain data only. This crate knows no I/O, no clock, no async runtime and no provider.

pub mod arguments;
mod confirmation;
mod envelope;
mod error_kind;
mod intent;
pub mod json;
mod principal;
pub mod suggest;
mod tool;
mod word_enum;

pub use confirmation::{ConfirmationRequest, ConfirmationToken};
pub use envelope::{ClientEnvelope, Envelope, Failure, Meta, Success};
pub use error_kind::ErrorKind;
pub use intent::IntentKind;
pub use principal::Principal;
pub use tool::{
    Availability, Category, Confirmation, ConfirmationRule, Execution, Mode, Permissions, RateLimit,
    SideEffects, ToolSpec,
};
