//! The fixture of a back end, and the records of the rules.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, Failure, Meta, Mode, Principal, Success};
use toolwright_orchestrator::store::{
    AuditEntry, Backend, Charge, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus,
    ConversationLog, Decision, Durability, ExecutionStatus, Memory, MeterScope, PendingQuery, PendingScope,
    RETRIEVAL_METER, SessionRecord, SessionStatus, Settlement, SharedEnvelope, Spent,
};

/// Creates stores for the rules.
pub trait StoreFixture: Sized + Send + Sync + 'static {
    type Store: Backend + ConversationLog + 'static;

    /// An empty store, separate from those of other tests.
    fn fresh() -> impl Future<Output = Self> + Send;

    fn store(&self) -> Arc<Self::Store>;
}

/// A fixture of a back end whose records survive its process.
pub trait Restart: StoreFixture {
    /// Crashes (nothing is flushed, all claims lose their owner) and opens what is left. No rule may hold the store.
    fn restart(self) -> impl Future<Output = Self> + Send;
}

pub struct MemoryStore(Arc<Memory>);

impl StoreFixture for MemoryStore {
    type Store = Memory;

    async fn fresh() -> Self {
        Self(Arc::default())
    }

    fn store(&self) -> Arc<Memory> {
        Arc::clone(&self.0)
    }
}

/// The time of most rules.
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
        spent: Spent::default(),
        state: json!({"audio": {"suppressed": false}, "größe": 1.5}),
        remembered: vec!["mail_send".to_owned()],
        status: SessionStatus::Active,
        created_at: NOW,
        expires_at: NOW + HOUR,
        revision: 0,
    }
}

/// A claim that is not idempotent, has no charges and needs no confirmation.
pub fn claim(session: &str, execution: &str) -> Claim {
    Claim {
        session: session.to_owned(),
        execution: execution.into(),
        tool: "mail_send".into(),
        tool_version: "1.2.0".into(),
        digest: [7; 32],
        idempotent: false,
        charges: Vec::new(),
        rates: Vec::new(),
        confirmation: None,
        now: NOW,
        durability: Durability::Committed,
        lease: None,
    }
}

/// A claim that may be repeated after a crash.
pub fn idempotent(session: &str, execution: &str) -> Claim {
    Claim { idempotent: true, ..claim(session, execution) }
}

/// A claim that costs one of `limit` retrievals in this turn.
pub fn retrieval(session: &str, execution: &str, limit: u32) -> Claim {
    Claim { charges: retrieval_charge(limit), ..idempotent(session, execution) }
}

pub fn retrieval_charge(limit: u32) -> Vec<Charge> {
    vec![Charge { meter: RETRIEVAL_METER, scope: MeterScope::Turn, amount: 1, limit }]
}

pub fn over_budget(spent: u32) -> ClaimOutcome {
    ClaimOutcome::OverBudget { meter: RETRIEVAL_METER.to_owned(), spent }
}

/// The retrievals of session `s` in its turn.
pub async fn retrievals(store: &impl Backend) -> u32 {
    store.session("s").await.unwrap().unwrap().spent.get(MeterScope::Turn, RETRIEVAL_METER)
}

/// The claim that this confirmation is about.
pub fn confirmed(confirmation: &ConfirmationRecord) -> Claim {
    Claim {
        confirmation: Some(confirmation.id.clone()),
        ..claim(&confirmation.session, &confirmation.execution)
    }
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
        ..AuditEntry::default()
    }
}

pub fn settlement(claim: &Claim) -> Settlement {
    Settlement {
        session: claim.session.clone(),
        execution: claim.execution.clone(),
        envelope: envelope(&claim.execution, json!({"sent": &*claim.execution})),
        audit: entry(&claim.session, &claim.execution),
        args: Some("{\"to\":\"ada\"}".into()),
        durability: claim.durability,
    }
}

/// All pending confirmations.
pub const ALL: PendingQuery<'static> = PendingQuery::all(PendingScope::All);

/// A pending confirmation of `claim(session, execution)`.
pub fn confirmation(id: &str, session: &str, execution: &str) -> ConfirmationRecord {
    ConfirmationRecord {
        id: id.to_owned(),
        session: session.to_owned(),
        principal: crate::support::session(session).principal.key(),
        client_id: "client".to_owned(),
        execution: execution.to_owned(),
        tool: "mail_send".to_owned(),
        tool_version: "1.2.0".to_owned(),
        args: json!({"to": "ada@example.org", "copies": 1}),
        redacted_args: None,
        is_edited: false,
        digest: [7; 32],
        preview: "Send a mail to ada@example.org".to_owned(),
        token_hash: [9; 32],
        created_at: NOW,
        expires_at: NOW + HOUR,
        status: ConfirmationStatus::Pending,
        decided_by: None,
        approver: None,
        edits: Vec::new(),
        reason: None,
        roles: None,
    }
}

pub fn approve(by: &str) -> Decision {
    Decision::Approve {
        by: by.into(),
        args: json!({"to": "ada@example.org", "copies": 1}),
        redacted_args: None,
        edits: Vec::new(),
        roles: None,
    }
}

/// How many sessions and confirmations a sweep has expired.
pub async fn swept(store: &impl Backend, now: i64) -> (usize, usize) {
    let swept = store.sweep(now).await.unwrap();
    (swept.sessions, swept.confirmations.len())
}

/// A store with the session `s`.
pub async fn with_session<F: StoreFixture>() -> (F, Arc<F::Store>) {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    (fixture, store)
}

/// Claims an execution that must be new, and settles it.
pub async fn run(store: &impl Backend, claim: Claim) -> SharedEnvelope {
    assert_eq!(store.claim(claim.clone()).await.unwrap(), ClaimOutcome::New);
    let settlement = settlement(&claim);
    store.settle(settlement.clone()).await.unwrap();
    settlement.envelope
}

/// Stores a confirmation, and approves it.
pub async fn approved(store: &impl Backend, pending: ConfirmationRecord) -> ConfirmationRecord {
    let pending = store.create_confirmation(pending).await.unwrap();
    let decided = store.decide_confirmation(&pending.id, approve("ada"), NOW + 1).await.unwrap();
    (*decided.unwrap()).clone()
}

/// The status of an execution, if it exists.
pub async fn status(store: &impl Backend, session: &str, execution: &str) -> Option<ExecutionStatus> {
    store.execution(session, execution).await.unwrap().map(|record| record.status)
}
