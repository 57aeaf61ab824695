//! Pages: data in, HTML out. One file per page with a plain struct and its template; the server collects the data.
//!
//! Knows no policy, no SQL and no HTTP types. Every value in a template is escaped: markup comes only from templates,
//! and from types of this crate that implement [`HtmlSafe`](askama::filters::HtmlSafe). A page is made with [`render`].

pub mod asset;
pub mod audit;
pub mod call_list;
pub mod call_page;
pub mod chart;
pub mod chat;
pub mod confirmations;
pub mod diff;
pub mod error_page;
mod escape;
pub mod format;
pub mod home;
pub mod knowledge_base;
pub mod layout;
pub mod markdown;
pub mod parameters;
pub mod parts;
pub mod prompt;
pub mod recipe;
pub mod schema_form;
pub mod session_list;
pub mod session_page;
pub mod sign_in;
pub mod tool_list;
pub mod tool_page;
pub mod toolsets;
pub mod usage;
pub mod voice;

pub use askama::Error as RenderError;
pub use askama::Template;
pub use escape::render;
pub use layout::{Layout, Page};

#[cfg(test)]
mod pages_tests;
