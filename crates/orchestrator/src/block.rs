//! Clients that are shut out for a while: the message `{type: "timeout", timeoutUntil}` of a tool is kept to by the server,
//! whatever the client makes of it.
//!
//! A block is kept as a session that nobody can name or use: it is in every store, outlives a restart, holds for all
//! processes that share the store, and is forgotten with time, all of which the store promises for sessions.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolwright_capabilities::CapabilityError;
use toolwright_contract::{ErrorKind, Failure, Mode};
use toolwright_registry::push_hex;

use crate::execution::Execution;
use crate::orchestrator::Orchestrator;
use crate::refusal::store_unavailable;
use crate::session::NewSession;
use crate::store::{self, Backend, Principal, SessionRecord, SessionStanding};

/// What the names of blocks begin with; no session's does.
const PREFIX: &str = "block_";
/// Of what is told apart by itself, in bytes.
const LONGEST: usize = 192;

/// Whether this is the name of a block, and so of no session.
pub(crate) fn is_block(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// Until when a message shuts its client out, if it does.
pub(crate) fn asked_for(message: Option<&Value>) -> Result<Option<i64>, CapabilityError> {
    let Some(message) = message.filter(|message| message.get("type").is_some_and(|kind| kind == "timeout"))
    else {
        return Ok(None);
    };
    // JavaScript has one kind of number.
    let until = message.get("timeoutUntil").and_then(Value::as_f64).filter(|until| until.fract() == 0.0);
    match until {
        Some(until) => Ok(Some(until as i64)),
        None => Err(CapabilityError::new(
            "INVALID_ARGUMENT",
            "`timeoutUntil` is a whole number of milliseconds since 1970",
        )),
    }
}

/// What a call of a client that is shut out is told.
fn refused(until: i64, now: i64) -> Failure {
    let seconds = (until - now + 999) / 1000;
    Failure::new(ErrorKind::Auth, format!("The user is blocked for another {seconds} s."))
        .suggest("Do nothing more for this user: the block cannot be lifted from here, and ends by itself.")
}

impl Orchestrator {
    /// Until when this client of this principal is shut out, if it is.
    pub async fn blocked(&self, principal: &Principal, client_id: &str) -> store::Result<Option<i64>> {
        let block = self.0.store.session(&name(principal, client_id)).await?;
        Ok(block.map(|block| block.expires_at).filter(|until| *until > self.0.clock.now()))
    }

    /// For how many milliseconds more a client is shut out, if it is.
    pub async fn blocked_for(&self, principal: &Principal, client_id: &str) -> store::Result<Option<i64>> {
        let until = self.blocked(principal, client_id).await?;
        Ok(until.map(|until| until - self.0.clock.now()))
    }

    /// Refuses the calls of a client that is shut out. What a handler calls belongs to a call that was let in.
    pub(crate) async fn let_in(&self, execution: &Execution) -> Result<(), Failure> {
        if execution.parent.is_some() {
            return Ok(());
        }
        let SessionRecord { principal, client_id, .. } = &*execution.session;
        match self.blocked(principal, client_id).await.map_err(|error| store_unavailable(&error))? {
            Some(until) => Err(refused(until, self.0.clock.now())),
            None => Ok(()),
        }
    }

    /// Shuts a client out. Of several blocks the one that ends last holds.
    pub(crate) async fn block(&self, session: &SessionRecord, until: i64) -> store::Result<()> {
        let id = name(&session.principal, &session.client_id);
        let now = self.0.clock.now();
        if until <= now {
            return Ok(());
        }
        let new = NewSession {
            id: Some(id.clone()),
            client_id: session.client_id.clone(),
            principal: session.principal.clone(),
            mode: Mode::Text,
            state: Map::new(),
        };
        let record = new.record(String::new(), now, until.saturating_sub(now));
        match self.0.store.create_session(record).await {
            Err(store::Error::Exists(_)) => {}
            created => return created,
        }
        self.change(&id, |block| {
            block.expires_at = block.expires_at.max(until);
            block.standing = SessionStanding::Active;
        })
        .await
    }

    /// Lets a client in again. False when it was not shut out.
    pub async fn unblock(&self, principal: &Principal, client_id: &str) -> store::Result<bool> {
        if self.blocked(principal, client_id).await?.is_none() {
            return Ok(false);
        }
        let now = self.0.clock.now();
        self.change(&name(principal, client_id), |block| block.expires_at = now).await?;
        Ok(true)
    }
}

/// The same for the same client of the same principal. Looked up with every call, so it is hashed only if it must
/// be.
fn name(principal: &Principal, client_id: &str) -> String {
    let (org, id) = (principal.org.as_deref().unwrap_or_default(), principal.id.as_str());
    let parts = [org, id, client_id];
    let length: usize = parts.iter().map(|part| part.len()).sum();
    // No store minds plain letters.
    let is_plain =
        length <= LONGEST && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_graphic()));
    let mut name = String::with_capacity(PREFIX.len() + LONGEST.max(32) + 16);
    name.push_str(PREFIX);
    if !is_plain {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        // No length begins so.
        name.push('x');
        push_hex(&mut name, &digest[..16]);
        return name;
    }
    for part in parts {
        push_hex(&mut name, &[part.len() as u8]);
        name.push_str(part);
    }
    name
}

/// A session, unless it is a block.
pub(crate) fn shown(session: Option<Arc<SessionRecord>>) -> Option<Arc<SessionRecord>> {
    session.filter(|session| !is_block(&session.id))
}
