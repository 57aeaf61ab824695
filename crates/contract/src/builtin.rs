//! The names of the handlers that Toolwright itself registers. docs/reference/builtin-handlers.md describes them.

/// Sorted by name.
pub const BUILTIN_HANDLERS: &[&str] =
    &["calendar.propose", "clock.now", "http.request", "kb.get", "kb.search"];
