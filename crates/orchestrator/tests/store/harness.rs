//! What a back end gives the suite, and the records that the rules are told with.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, Failure, Meta, Mode, Success};
use toolwright_orchestrator::store::{
    Answer, AuditEntry, Backend, Claim, Claimed, Confirmation, Decision, Durability, Memory, Principal,
    SessionRecord, SessionStanding, Settlement, SharedEnvelope, Status,
};

/// Gives stores to the rules.
pub trait Harness: Sized + Send + Sync + 'static {
    type Store: Backend + 'static;

    /// An empty store that no other test sees.
    fn fresh() -> impl Future<Output = Self> + Send;

    fn store(&self) -> Arc<Self::Store>;
}

/// Of back ends that keep things beyond their process.
pub trait Reopen: Harness {
    /// Crashes (nothing is flushed, whoever owned a claim is gone) and opens what was left. The rules have dropped all
    /// that they shared of the store.
    fn reopen(self) -> impl Future<Output = Self> + Send;
}

/// The store of this suite's first line.
pub struct InMemory(Arc<Memory>);

impl Harness for InMemory {
    type Store = Memory;

    async fn fresh() -> Self {
        Self(Arc::default())
    }

    fn store(&self) -> Arc<Memory> {
        Arc::clone(&self.0)
    }
}

/// The time at which most of the suite happens.
pub const NOW: i64 = 1_780_000_000_000;
pub const HOUR: i64 = 60 * 60 * 1000;
pub const DAY: i64 = 24 * HOUR;

pub fn session(id: &str) -> SessionRecord {
    SessionRecord {
        id: id.to_owned(),
        client_id: "client".to_owned(),
        principal: Principal {
            id: "ada".to_owned(),
            org: Some("analytics".to_owned()),
            roles: vec!["clerk".to_owned()],
        },
        mode: Mode::Text,
        toolset: "1.0.abcdef12".to_owned(),
        turn: 0,
        retrievals: 0,
        state: json!({"audio": {"suppressed": false}, "größe": 1.5}),
        remembered: vec!["mail_send".to_owned()],
        standing: SessionStanding::Active,
        created_at: NOW,
        expires_at: NOW + HOUR,
        revision: 0,
    }
}

/// A call that is not idempotent, costs nothing and needs no confirmation.
pub fn claim(session: &str, execution: &str) -> Claim {
    Claim {
        session: session.to_owned(),
        execution: execution.into(),
        tool: "mail_send".into(),
        tool_version: "1.2.0".into(),
        digest: [7; 32],
        idempotent: false,
        budget: None,
        confirmation: None,
        now: NOW,
        durability: Durability::Committed,
    }
}

/// A call that may run again.
pub fn idempotent(session: &str, execution: &str) -> Claim {
    Claim { idempotent: true, ..claim(session, execution) }
}

/// A retrieval call: it costs one of `limit` in this turn.
pub fn retrieval(session: &str, execution: &str, turn: u64, limit: u32) -> Claim {
    Claim { budget: Some((turn, limit)), ..idempotent(session, execution) }
}

/// The call that this question is about.
pub fn confirmed(asked: &Confirmation) -> Claim {
    Claim { confirmation: Some(asked.id.clone()), ..claim(&asked.session, &asked.execution) }
}

fn meta(execution: &str) -> Meta {
    Meta {
        tool: "mail_send".to_owned(),
        tool_version: Some("1.2.0".to_owned()),
        registry_version: "1.0.abcdef12".to_owned(),
        duration: 12,
        execution_id: execution.to_owned(),
        more: Map::from_iter([("engine".to_owned(), json!("javascript"))]),
    }
}

pub fn envelope(execution: &str, data: Value) -> SharedEnvelope {
    let success =
        Success { data: data.into(), intents: vec![json!({"type": "SUPPRESS_AUDIO", "value": true})] };
    Arc::new(Envelope { outcome: Ok(success), meta: meta(execution) })
}

pub fn failure(execution: &str, failure: Failure) -> SharedEnvelope {
    Arc::new(Envelope { outcome: Err(failure), meta: meta(execution) })
}

pub fn entry(session: &str, execution: &str) -> AuditEntry {
    AuditEntry {
        at: NOW,
        event: "call".to_owned(),
        session: session.to_owned(),
        client_id: "client".to_owned(),
        tool: "mail_send".to_owned(),
        tool_version: "1.2.0".to_owned(),
        registry_version: "1.0.abcdef12".to_owned(),
        execution_id: execution.to_owned(),
        args_digest: "07".repeat(32),
        outcome: "ok".to_owned(),
        duration_ms: 12,
        intents: vec!["SUPPRESS_AUDIO".to_owned()],
        data: json!({"to": "\u{fc}ber \"quoted\""}),
    }
}

pub fn settlement(claim: &Claim) -> Settlement {
    Settlement {
        session: claim.session.clone(),
        execution: claim.execution.clone(),
        envelope: envelope(&claim.execution, json!({"sent": &*claim.execution})),
        audit: entry(&claim.session, &claim.execution),
        now: claim.now,
        durability: claim.durability,
    }
}

/// A question about `claim(session, execution)`.
pub fn question(id: &str, session: &str, execution: &str) -> Confirmation {
    Confirmation {
        id: id.to_owned(),
        session: session.to_owned(),
        client_id: "client".to_owned(),
        execution: execution.to_owned(),
        tool: "mail_send".to_owned(),
        tool_version: "1.2.0".to_owned(),
        args: json!({"to": "ada@example.org", "copies": 1}),
        shown: None,
        is_edited: false,
        digest: [7; 32],
        preview: "Send a mail to ada@example.org".to_owned(),
        token_hash: [9; 32],
        created_at: NOW,
        expires_at: NOW + HOUR,
        answer: Answer::Pending,
        decided_by: None,
        reason: None,
    }
}

pub fn approve(by: &str) -> Decision {
    Decision::Approve { by: by.to_owned(), args: json!({"to": "ada@example.org", "copies": 1}), shown: None }
}

/// How many sessions and questions a sweep has ended.
pub async fn swept(store: &impl Backend, now: i64) -> (usize, usize) {
    let swept = store.sweep(now).await.unwrap();
    (swept.sessions, swept.questions.len())
}

/// A store with the session `s`.
pub async fn with_session<H: Harness>() -> (H, Arc<H::Store>) {
    let harness = H::fresh().await;
    let store = harness.store();
    store.create_session(session("s")).await.unwrap();
    (harness, store)
}

/// Claims what must be new, and settles it.
pub async fn run(store: &impl Backend, claim: Claim) -> SharedEnvelope {
    assert_eq!(store.claim(claim.clone()).await.unwrap(), Claimed::New);
    let settlement = settlement(&claim);
    store.settle(settlement.clone()).await.unwrap();
    settlement.envelope
}

/// Asks and approves.
pub async fn approved(store: &impl Backend, asked: Confirmation) -> Confirmation {
    let asked = store.ask(asked).await.unwrap();
    let decided = store.decide(&asked.id, approve("ada"), NOW + 1).await.unwrap();
    (*decided.unwrap()).clone()
}

/// The status of an execution, if it is known.
pub async fn status(store: &impl Backend, session: &str, execution: &str) -> Option<Status> {
    store.recorded(session, execution).await.unwrap().map(|standing| standing.status)
}
