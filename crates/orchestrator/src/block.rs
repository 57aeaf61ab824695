//! Blocked clients: the message `{type: "timeout", timeoutUntil}` of a tool blocks its client, and the server refuses
//! the client's calls until then.

use serde_json::Value;
use toolwright_capabilities::CapabilityError;
use toolwright_contract::{ErrorKind, Failure, Principal};

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

impl Orchestrator {
    /// For how many milliseconds more this client of this principal is blocked, if it is.
    pub async fn blocked_for(&self, principal: &Principal, client_id: &str) -> store::Result<Option<i64>> {
        let until = self.0.store.blocked_until(principal, client_id).await?;
        Ok(until.map(|until| until - self.0.clock.now()).filter(|left| *left > 0))
    }

    /// Refuses the calls of a blocked client. A nested call belongs to a call that was not refused.
    pub(crate) async fn check_block(&self, execution: &Execution) -> Result<(), Failure> {
        if execution.parent.is_some() {
            return Ok(());
        }
        let SessionRecord { principal, client_id, .. } = &*execution.session;
        match self.blocked_for(principal, client_id).await.map_err(store_unavailable)? {
            Some(left_ms) => Err(blocked(left_ms)),
            None => Ok(()),
        }
    }

    /// Blocks the client of a session. Of several blocks the one that ends last applies.
    pub(crate) async fn block(&self, session: &SessionRecord, until: i64) -> store::Result<()> {
        if until <= self.0.clock.now() {
            return Ok(());
        }
        let block = BlockRecord::new(&session.principal, &session.client_id, until);
        self.0.store.block(block).await
    }

    /// Removes a block. False when the client was not blocked.
    pub async fn unblock(&self, principal: &Principal, client_id: &str) -> store::Result<bool> {
        self.0.store.unblock(principal, client_id, self.0.clock.now()).await
    }
}
