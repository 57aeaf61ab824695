//! Constraints that a view cannot express as the tool's own schema does.

use std::fmt;

use serde::Serialize;

/// One constraint that a provider's view lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    pub tool: String,
    /// JSON pointer into the tool's parameters, with references resolved.
    pub path: String,
    pub keyword: String,
    #[serde(rename = "done")]
    pub kind: LossKind,
    /// For people.
    pub note: String,
}

/// How a view handles a constraint that it cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// The description states it.
    Described,
    /// Another keyword states nearly the same.
    Rewritten,
    /// The view does not state it; calls are still validated against it.
    Dropped,
    /// A recursive or very large schema is included only up to some depth.
    Cut,
    /// The whole tool is missing in this view.
    LeftOut,
}

/// As in JSON.
impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
