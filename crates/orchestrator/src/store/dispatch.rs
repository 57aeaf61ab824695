//! The back ends behind one type.

use std::sync::Arc;

use toolwright_contract::Principal;

use super::{
    AuditEntry, AuditRow, Backend, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord, Decision,
    ExecutionRecord, Memory, Postgres, Result, SessionRecord, SettleOutcome, Settlement, Sqlite,
    SweepOutcome,
};

/// A store of any kind.
#[derive(Debug)]
pub enum Store {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Postgres),
}

macro_rules! dispatch {
    ($(async fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $output:ty;)*) => {
        impl Backend for Store {
            $(async fn $name(&self $(, $argument: $type)*) -> $output {
                match self {
                    Self::Memory(store) => store.$name($($argument),*).await,
                    Self::Sqlite(store) => store.$name($($argument),*).await,
                    // Boxed to keep the futures of callers small: this one is large, and waits for a network anyway.
                    Self::Postgres(store) => Box::pin(store.$name($($argument),*)).await,
                }
            })*
        }
    };
}

dispatch! {
    async fn create_session(&self, session: SessionRecord) -> Result<()>;
    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>>;
    async fn begin_turn(&self, id: &str) -> Result<Arc<SessionRecord>>;
    async fn update_session(&self, session: &SessionRecord) -> Result<bool>;
    async fn execution(&self, session: &str, execution: &str) -> Result<Option<ExecutionRecord>>;
    async fn claim(&self, claim: Claim) -> Result<ClaimOutcome>;
    async fn settle(&self, settlement: Settlement) -> Result<SettleOutcome>;
    async fn release(&self, session: &str, execution: &str) -> Result<()>;
    async fn create_confirmation(&self, confirmation: ConfirmationRecord) -> Result<Arc<ConfirmationRecord>>;
    async fn confirmation(&self, id: &str) -> Result<Option<Arc<ConfirmationRecord>>>;
    async fn pending_confirmations(&self, session: Option<&str>) -> Result<Vec<Arc<ConfirmationRecord>>>;
    async fn decide_confirmation(
        &self, id: &str, decision: Decision, now: i64
    ) -> Result<Option<Arc<ConfirmationRecord>>>;
    async fn approved_confirmations(&self) -> Result<Vec<Arc<ConfirmationRecord>>>;
    async fn block(&self, block: BlockRecord) -> Result<()>;
    async fn blocked_until(&self, principal: &Principal, client_id: &str) -> Result<Option<i64>>;
    async fn unblock(&self, principal: &Principal, client_id: &str, now: i64) -> Result<bool>;
    async fn append_audit(&self, entry: AuditEntry) -> Result<()>;
    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>>;
    async fn sweep(&self, now: i64) -> Result<SweepOutcome>;
    async fn inactive_sessions(&self, sessions: &[String], now: i64) -> Result<Vec<String>>;
    async fn is_toolset_in_use(&self, toolset: &str) -> Result<bool>;
    async fn flush(&self) -> Result<()>;
}
