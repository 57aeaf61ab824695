//! The types that all layers share: what a tool declares, the result of a call, the intents of a handler.
//!
//! Plain data only. This crate knows no I/O, no clock, no async runtime and no provider.

pub mod arguments;
mod builtin;
mod confirmation;
mod envelope;
mod error_kind;
pub mod escape;
pub mod handler_context;
mod intent;
pub mod json;
pub mod object;
mod principal;
pub mod suggest;
mod tool;
mod word_enum;

pub use builtin::BUILTIN_HANDLERS;
pub use confirmation::{ConfirmationRequest, ConfirmationToken};
pub use envelope::{ClientEnvelope, Envelope, Failure, Meta, Success, join_sentences};
pub use error_kind::ErrorKind;
pub use intent::IntentKind;
pub use principal::{ADMIN, LOCAL, Principal, SPEAKS_FOR_CLIENTS};
pub use tool::{
    Availability, Category, Confirmation, ConfirmationRule, ExecutionMode, Mode, PREVIEW_FUNCTIONS,
    Permissions, PreviewRead, RateLimit, SideEffects, ToolSpec,
};
