//! On whose behalf a session acts.

use serde::{Deserialize, Serialize};

/// An authenticated user or service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub id: String,
    pub org: Option<String>,
    #[serde(default)]
    pub roles: Vec<String>,
}
