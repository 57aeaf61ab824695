//! Provider views and codecs: how tools are declared to a model, how its calls are read, how answers are written.
//!
//! Pure functions on JSON, one file a provider. This crate knows no sockets, no sessions and no async runtime.
//!
//! ```
//! use serde_json::json;
//!
//! let openai = toolwright_providers::provider("openai-chat")?;
//! let mut assembler = openai.assembler();
//! let mut frames = openai.frames();
//! let mut calls = Vec::new();
//! let stream = concat!(
//!     r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"sum","arguments":"{\"a\":"}}]}}]}"#,
//!     "\n\n",
//!     r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}"#,
//!     "\n\n",
//! );
//! for piece in stream.as_bytes().chunks(7) {
//!     for frame in frames.push(piece) {
//!         calls.extend(assembler.take(&frame?));
//!     }
//! }
//! assert_eq!(calls[0].arguments, Ok(json!({ "a": 1 })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod anthropic;
mod assemble;
mod call;
mod frames;
mod gemini;
mod gemini_native;
mod items;
mod loss;
mod lower;
pub mod mcp;
mod ollama;
mod openai_chat;
mod openai_realtime;
mod openai_responses;
mod provider;
mod view;

pub use answer::Answer;
pub use assemble::Assembler;
pub use call::{Call, Unreadable};
pub use frames::{Frames, Framing, Malformed};
pub use loss::{Done, Loss};
pub use provider::{PROVIDERS, Provider, UnknownProvider, provider};
pub use view::View;
