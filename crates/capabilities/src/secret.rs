//! A password or key of a service that a capability uses.

use std::fmt;

/// A text that appears in no log: its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
