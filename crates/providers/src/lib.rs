//! Provider views and codecs: declare tools to a model, read its calls, write their results.
//!
//! Pure functions on JSON, one file a provider. This crate knows no sockets, no sessions and no async runtime.
//!
//! ```
//! use serde_json::json;
//!
//! let openai = toolwright_providers::provider("openai-chat")?;
//! let mut assembler = openai.assembler();
//! let mut decoder = openai.frame_decoder();
//! let mut calls = Vec::new();
//! let stream = concat!(
//!     r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","#,
//!     r#""function":{"name":"sum","arguments":"{\"a\":"}}]}}]}"#,
//!     "\n\n",
//!     r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"#,
//!     r#""finish_reason":"tool_calls"}]}"#,
//!     "\n\n",
//! );
//! for chunk in stream.as_bytes().chunks(7) {
//!     for event in decoder.push(chunk) {
//!         calls.extend(assembler.push(&event?));
//!     }
//! }
//! assert_eq!(calls[0].arguments, Ok(json!({ "a": 1 })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod anthropic;
mod assembler;
mod call;
mod frames;
mod gemini;
mod gemini_native;
mod loss;
mod lower;
pub mod mcp;
mod ollama;
mod openai_chat;
mod openai_items;
mod openai_realtime;
mod openai_responses;
mod provider;
mod tool_result;
mod view;

pub use assembler::Assembler;
pub use call::{Call, InvalidArguments};
pub use frames::{FrameDecoder, Framing, MalformedEvent};
pub use loss::{Loss, LossKind};
pub use provider::{PROVIDERS, Provider, UnknownProvider, provider};
pub use tool_result::ToolResult;
pub use view::View;
