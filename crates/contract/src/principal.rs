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

/// The role of admins.
pub const ADMIN: &str = "admin";
/// The role of a service that acts for many clients with one key, and gives each of them a client id. Rate limits and
/// blocks then apply to each client; otherwise they apply to the principal, whatever client ids it chooses.
pub const SPEAKS_FOR_CLIENTS: &str = "speaks-for-clients";

/// The id of the principal of a server without keys, and of an MCP host over stdin: whoever can reach the program.
pub const LOCAL: &str = "local";

impl Principal {
    /// Whether it has proven who it is, by a key or a token.
    pub fn is_authenticated(&self) -> bool {
        !self.id.is_empty() && self.id != LOCAL
    }

    /// Its id and org in one text, which differs from that of any other principal.
    pub fn key(&self) -> String {
        format!("{:?} {}", self.org, self.id)
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }

    /// Whether it is the same user or service, whatever the roles.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.id == other.id && self.org == other.org
    }
}
