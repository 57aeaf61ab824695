//! The back ends behind one type: one arm each.

use std::sync::Arc;

use super::{
    AuditEntry, AuditRow, Backend, Claim, Claimed, Confirmation, Decision, Memory, Postgres, Result,
    SessionRecord, Settled, Settlement, Sqlite, Standing, Swept,
};

/// A store of any kind.
#[derive(Debug)]
pub enum Store {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Postgres),
}

macro_rules! each {
    ($store:expr, $back_end:ident => $call:expr) => {
        match $store {
            Store::Memory($back_end) => $call.await,
            Store::Sqlite($back_end) => $call.await,
            // Boxed: it waits for a network anyway, and every future that asks a store would be as large as this one.
            Store::Postgres($back_end) => Box::pin($call).await,
        }
    };
}

impl Backend for Store {
    async fn create_session(&self, session: SessionRecord) -> Result<()> {
        each!(self, store => store.create_session(session))
    }

    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>> {
        each!(self, store => store.session(id))
    }

    async fn begin_turn(&self, id: &str, now: i64) -> Result<Arc<SessionRecord>> {
        each!(self, store => store.begin_turn(id, now))
    }

    async fn update_session(&self, session: &SessionRecord) -> Result<bool> {
        each!(self, store => store.update_session(session))
    }

    async fn recorded(&self, session: &str, execution: &str) -> Result<Option<Standing>> {
        each!(self, store => store.recorded(session, execution))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        each!(self, store => store.claim(claim))
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled> {
        each!(self, store => store.settle(settlement))
    }

    async fn release(&self, session: &str, execution: &str) -> Result<()> {
        each!(self, store => store.release(session, execution))
    }

    async fn ask(&self, confirmation: Confirmation) -> Result<Arc<Confirmation>> {
        each!(self, store => store.ask(confirmation))
    }

    async fn confirmation(&self, id: &str) -> Result<Option<Arc<Confirmation>>> {
        each!(self, store => store.confirmation(id))
    }

    async fn pending(&self, session: Option<&str>) -> Result<Vec<Arc<Confirmation>>> {
        each!(self, store => store.pending(session))
    }

    async fn decide(&self, id: &str, decision: Decision, now: i64) -> Result<Option<Arc<Confirmation>>> {
        each!(self, store => store.decide(id, decision, now))
    }

    async fn approved(&self) -> Result<Vec<Arc<Confirmation>>> {
        each!(self, store => store.approved())
    }

    async fn append(&self, entry: AuditEntry) -> Result<()> {
        each!(self, store => store.append(entry))
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        each!(self, store => store.audit(after, limit))
    }

    async fn sweep(&self, now: i64) -> Result<Swept> {
        each!(self, store => store.sweep(now))
    }

    async fn over(&self, sessions: &[String], now: i64) -> Result<Vec<String>> {
        each!(self, store => store.over(sessions, now))
    }

    async fn is_kept(&self, toolset: &str) -> Result<bool> {
        each!(self, store => store.is_kept(toolset))
    }

    async fn flush(&self) -> Result<()> {
        each!(self, store => store.flush())
    }
}
