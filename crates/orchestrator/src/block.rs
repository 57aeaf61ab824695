//! Blocked clients: the message `{type: "timeout", timeoutUntil}` of a tool blocks its client, and the server refuses
//! the client's calls until then.
//!
//! A block applies to the principal, whatever client ids it chooses. For a principal that speaks for clients, and for
//! the role `admin`, it applies to the client that the session names, or else to the session alone: a model cannot
//! block the admin, or all users of a server without keys.

use serde_json::Value;
use toolwright_capabilities::CapabilityError;
use toolwright_contract::{ADMIN, ErrorKind, Failure, Principal, SPEAKS_FOR_CLIENTS};

use crate::execution::Execution;
use crate::orchestrator::Orchestrator;
use crate::refusal::store_unavailable;
use crate::store::{self, Backend, BlockRecord, SessionRecord};

/// Until when a message blocks its client, if it does.
pub(crate) fn requested_block(message: Option<&Value>) -> Result<Option<i64>, CapabilityError> {
    let Some(message) = message.filter(|message| message.get("type").is_some_and(|kind| kind == "timeout"))
    else {
        return Ok(None);
    };
    // JavaScript has one type of numbers.
    let until = message.get("timeoutUntil").and_then(Value::as_f64).filter(|until| until.fract() == 0.0);
    match until {
        Some(until) => Ok(Some(until as i64)),
        None => Err(CapabilityError::new(
            "INVALID_ARGUMENT",
            "`timeoutUntil` must be a whole number of milliseconds since 1970",
        )),
    }
}

fn blocked(left_ms: i64) -> Failure {
    let seconds = (left_ms + 999) / 1000;
    Failure::new(ErrorKind::Auth, format!("The user is blocked for another {seconds} s.")).suggest(
        "Do nothing more for this user: the block cannot be removed by a call, and ends automatically.",
    )
}

/// The client id under which a block of this client is stored: for a principal as a whole its own id, for a session
/// alone the session's. `None` if no block can apply.
fn blocked_client<'a>(
    principal: &'a Principal,
    client_id: &'a str,
    session: Option<&'a str>,
) -> Option<&'a str> {
    if !principal.has_role(SPEAKS_FOR_CLIENTS) && !principal.has_role(ADMIN) {
        return Some(&principal.id);
    }
    if client_id != principal.id { Some(client_id) } else { session }
}

impl Orchestrator {
    /// For how many milliseconds more a client of this principal is blocked, if it is. A block may apply to one session
    /// alone.
    pub async fn blocked_for(
        &self,
        principal: &Principal,
        client_id: &str,
        session: Option<&str>,
    ) -> store::Result<Option<i64>> {
        let Some(client) = blocked_client(principal, client_id, session) else { return Ok(None) };
        let until = self.0.store.blocked_until(principal, client).await?;
        let left = until.map(|until| until - self.0.clock.now()).filter(|left| *left > 0);
        Ok(left.map(|left| left.min(self.0.policy.max_block_ms)))
    }

    /// Refuses the calls of a blocked client. A nested call belongs to a call that was not refused.
    pub(crate) async fn check_block(&self, execution: &Execution) -> Result<(), Failure> {
        if execution.parent.is_some() {
            return Ok(());
        }
        let SessionRecord { principal, client_id, id, .. } = &*execution.session;
        match self.blocked_for(principal, client_id, Some(id)).await.map_err(store_unavailable)? {
            Some(left_ms) => Err(blocked(left_ms)),
            None => Ok(()),
        }
    }

    /// Blocks the client of a session, for `max_block_ms` at most. If there are several blocks, the one that ends last
    /// applies.
    pub(crate) async fn block(&self, session: &SessionRecord, until: i64) -> store::Result<()> {
        let SessionRecord { principal, client_id, id, .. } = session;
        let now = self.0.clock.now();
        let Some(client) = blocked_client(principal, client_id, Some(id)).filter(|_| until > now) else {
            return Ok(());
        };
        let until = until.min(now.saturating_add(self.0.policy.max_block_ms));
        self.0.store.block(BlockRecord::new(principal, client, until)).await
    }

    /// Lifts the block of a client, and that of its principal. False when neither was blocked.
    pub async fn unblock(&self, principal: &Principal, client_id: &str) -> store::Result<bool> {
        let now = self.0.clock.now();
        let client = self.0.store.unblock(principal, client_id, now).await?;
        let is_other = client_id != principal.id;
        Ok((is_other && self.0.store.unblock(principal, &principal.id, now).await?) || client)
    }
}
