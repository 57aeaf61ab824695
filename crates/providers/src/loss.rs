//! What a view could not say as the canonical schema says it.

use std::fmt;

use serde::Serialize;

/// One constraint that a provider's view lost, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    pub tool: String,
    /// JSON pointer into the tool's parameters, with references written out.
    pub path: String,
    pub keyword: String,
    pub done: Done,
    /// For people.
    pub note: String,
}

/// What became of a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// The description says it in words.
    Described,
    /// Another keyword says nearly the same.
    Rewritten,
    /// The view does not say it; a call is still validated against it.
    Dropped,
    /// A schema that contains itself was written out once.
    Cut,
    /// The whole tool is missing in this view.
    LeftOut,
}

impl Done {
    /// As in the JSON form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Described => "described",
            Self::Rewritten => "rewritten",
            Self::Dropped => "dropped",
            Self::Cut => "cut",
            Self::LeftOut => "left_out",
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
