//! How a session begins. Its mode is said once, and its toolset stays.

use serde_json::{Map, Value};
use toolwright_contract::Mode;

use crate::store::{Principal, SessionRecord, SessionStanding};

/// What a session is begun with.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// An id of its own when absent.
    pub id: Option<String>,
    pub client_id: String,
    pub principal: Principal,
    pub mode: Mode,
    /// What handlers see as `context.session.state`; an object.
    pub state: Map<String, Value>,
}

impl NewSession {
    /// A session of this mode, for this client.
    pub fn new(client_id: impl Into<String>, mode: Mode) -> Self {
        let client_id = client_id.into();
        let principal = Principal { id: client_id.clone(), org: None, roles: Vec::new() };
        Self { id: None, client_id, principal, mode, state: Map::new() }
    }

    pub(crate) fn record(self, toolset: String, now: i64, lifetime_ms: i64) -> SessionRecord {
        SessionRecord {
            id: self.id.unwrap_or_else(|| crate::ids::fresh("sess")),
            client_id: self.client_id,
            principal: self.principal,
            mode: self.mode,
            toolset,
            turn: 0,
            retrievals: 0,
            state: Value::Object(self.state),
            remembered: Vec::new(),
            standing: SessionStanding::Active,
            created_at: now,
            expires_at: now.saturating_add(lifetime_ms),
            revision: 0,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An active text session of a member of staff.
    pub(crate) fn session(id: &str) -> SessionRecord {
        let mut new = NewSession::new("client", Mode::Text);
        new.id = Some(id.to_owned());
        new.principal = Principal {
            id: "mira".to_owned(),
            org: Some("studio".to_owned()),
            roles: vec!["staff".to_owned()],
        };
        new.record("1.0.0".to_owned(), 0, 1000)
    }
}
