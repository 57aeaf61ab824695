//! The store's operations in memory.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use toolwright_contract::Principal;

use super::claim::ClaimDecision;
use super::confirmations::Confirmations;
use super::evicted::id_hash;
use super::session_entry::{ExecutionStage, SessionEntry};
use super::{Memory, lock};
use crate::store::audit_query::{AuditPage, AuditQuery};
use crate::store::journal::{AuditText, CallRow, Change, Deletion, Journal, LostChanges};
use crate::store::rate_windows::{RateCharge, RateExceeded};
use crate::store::records::{
    AuditEntry, AuditRow, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Decision,
    Durability, ExecutionRecord, ExecutionStatus, MinuteRecord, PendingQuery, PendingScope, SessionPage,
    SessionQuery, SessionRecord, SessionStatus, SettleOutcome, Settlement, SweepOutcome, ToolsetInfo,
    ToolsetRecord,
};
use crate::store::task::{TaskChange, TaskQuery, TaskRecord};
use crate::store::{Backend, Error, RETENTION_MS, Result};

impl<J: Journal> Backend for Memory<J> {
    async fn create_session(&self, session: SessionRecord, durability: Durability) -> Result<()> {
        let record = Arc::new(session);
        let written = match self.shard(&record.id).entry(record.id.clone()) {
            Entry::Occupied(_) => return Err(Error::Exists(record.id.clone())),
            Entry::Vacant(vacant) => {
                let entry = vacant.insert(SessionEntry::new(Arc::clone(&record)));
                entry.log_end = Some(0);
                lock(&self.sessions_by_age).insert((record.created_at, record.id.clone()));
                self.journal.write(Change::Session(Arc::clone(&record)), durability)
            }
        };
        let written = written.wait().await;
        if written.is_err()
            && let Entry::Occupied(entry) = self.shard(&record.id).entry(record.id.clone())
            && Arc::ptr_eq(&entry.get().record, &record)
        {
            entry.remove();
            lock(&self.sessions_by_age).remove(&(record.created_at, record.id.clone()));
        }
        written
    }

    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>> {
        Ok(self.shard(id).get(id).map(|entry| Arc::clone(&entry.record)))
    }

    async fn begin_turn(&self, id: &str) -> Result<Arc<SessionRecord>> {
        let (record, written) = {
            let mut shard = self.shard(id);
            let entry = shard.get_mut(id).ok_or_else(|| Error::NoSession(id.to_owned()))?;
            let record = Arc::make_mut(&mut entry.record);
            record.turn += 1;
            record.spent.begin_turn();
            let change = Change::Session(Arc::clone(&entry.record));
            (Arc::clone(&entry.record), self.journal.write(change, Durability::Relaxed))
        };
        written.wait().await.map(|()| record)
    }

    async fn update_session(&self, session: &SessionRecord) -> Result<bool> {
        let (before, revision, written) = {
            let mut shard = self.shard(&session.id);
            let entry = shard.get_mut(&session.id).ok_or_else(|| Error::NoSession(session.id.clone()))?;
            let before = Arc::clone(&entry.record);
            if before.revision != session.revision {
                return Ok(false);
            }
            let revision = before.revision + 1;
            entry.replace_record(SessionRecord { revision, ..session.clone() });
            let change = Change::Session(Arc::clone(&entry.record));
            (before, revision, self.journal.write(change, Durability::Committed))
        };
        let written = written.wait().await;
        if written.is_err()
            && let Some(entry) = self.shard(&session.id).get_mut(&session.id)
            && entry.record.revision == revision
        {
            entry.replace_record((*before).clone());
        }
        written.map(|()| true)
    }

    async fn execution(&self, session: &str, execution: &str) -> Result<Option<ExecutionRecord>> {
        let evicted = {
            let shard = self.shard(session);
            let Some(entry) = shard.get(session) else { return Ok(None) };
            if let Some(known) = entry.executions.get(execution) {
                return Ok(Some(known.record()));
            }
            entry.evicted.get(&id_hash(execution)).copied()
        };
        let Some(evicted) = evicted else { return Ok(None) };
        Box::pin(self.read_evicted(session, execution, evicted)).await
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimOutcome> {
        let claim = Arc::new(claim);
        loop {
            let evicted = match self.decide_claim(&claim)? {
                ClaimDecision::Decided(outcome) => return Ok(outcome),
                ClaimDecision::New(written, new) => {
                    written.wait().await?;
                    return Ok(new.receive());
                }
                ClaimDecision::ReadEvicted(evicted) => evicted,
            };
            match Box::pin(self.read_evicted(&claim.session, &claim.execution, evicted)).await? {
                Some(record) if record.digest != claim.digest => return Ok(ClaimOutcome::Conflict),
                Some(ExecutionRecord { status: ExecutionStatus::Finished(envelope), .. }) => {
                    return Ok(ClaimOutcome::Finished(envelope));
                }
                // It is an orphan now, or unknown: decide again.
                _ => {}
            }
        }
    }

    async fn spend_rates(&self, rates: &[RateCharge], now: i64) -> Result<Option<RateExceeded>> {
        Ok(self.count_call(rates, now))
    }

    async fn settle(&self, settlement: Settlement) -> Result<SettleOutcome> {
        let Settlement { session, execution, envelope, args, audit, durability } = settlement;
        let text = self.journal.serialize(&envelope)?;
        let bytes = text.len() + args.as_ref().map_or(0, |args| args.len());
        let audit = AuditText::new(&audit);
        let written = {
            let mut shard = self.shard(&session);
            let entry = shard.get_mut(&session).ok_or_else(|| Error::NoSession(session.clone()))?;
            entry.executions.get_mut(&*execution).filter(|known| known.is_unsettled()).map(|known| {
                known.args = args.clone();
                let call = CallRow {
                    number: known.number,
                    session: session.clone(),
                    execution: Arc::clone(&execution),
                    digest: known.digest,
                    idempotent: known.idempotent,
                    claimed_at: known.claimed_at,
                };
                let change = Change::Settlement { call, envelope: text, args, audit };
                let written = self.journal.write(change, durability);
                known.stage = match durability {
                    Durability::Committed if !written.is_ready() => ExecutionStage::Settling(envelope),
                    _ => ExecutionStage::Finished(envelope),
                };
                written
            })
        };
        let Some(written) = written else {
            return Box::pin(self.earlier_settlement(&session, &execution)).await;
        };
        if written.is_ready() {
            self.cache_envelope(&session, &execution, bytes);
            return Ok(SettleOutcome::Recorded);
        }
        let mut unwritten = UnwrittenSettlement {
            memory: self,
            session: &session,
            execution: &execution,
            bytes,
            has_failed: false,
        };
        let written = written.wait().await;
        unwritten.has_failed = written.is_err();
        written.map(|()| SettleOutcome::Recorded)
    }

    async fn release(&self, session: &str, execution: &str) -> Result<()> {
        // On disk it is a claim without a settlement already.
        self.with_execution(session, execution, |known| {
            if known.idempotent && matches!(known.stage, ExecutionStage::Running) {
                known.stage = ExecutionStage::Orphaned;
            }
        });
        Ok(())
    }

    async fn create_confirmation(&self, confirmation: ConfirmationRecord) -> Result<Arc<ConfirmationRecord>> {
        let write = {
            let mut confirmations = self.confirmations();
            let ConfirmationRecord { session, execution, created_at, .. } = &confirmation;
            let before = confirmations.pending_for(session, execution, *created_at).cloned();
            let created = match &before {
                Some(earlier) => earlier.with_new_token(&confirmation),
                None => confirmation,
            };
            self.write_confirmation(&mut confirmations, before, created)
        };
        write.await
    }

    async fn confirmation(&self, id: &str) -> Result<Option<Arc<ConfirmationRecord>>> {
        Ok(self.confirmations().get(id).cloned())
    }

    async fn pending_confirmations(&self, query: PendingQuery<'_>) -> Result<Vec<Arc<ConfirmationRecord>>> {
        Ok(self.confirmations().pending(query).take(query.limit).cloned().collect())
    }

    async fn closed_confirmations(&self, ids: &[String], now: i64) -> Result<Vec<String>> {
        let confirmations = lock(&self.confirmations);
        let is_pending = |id: &str| confirmations.get(id).is_some_and(|known| known.is_pending_at(now));
        Ok(ids.iter().filter(|id| !is_pending(id)).cloned().collect())
    }

    async fn count_pending(&self, principal: &str, now: i64, limit: usize) -> Result<usize> {
        let confirmations = self.confirmations();
        let pending = confirmations.pending(PendingQuery::all(PendingScope::Principal(principal)));
        Ok(pending.filter(|pending| pending.is_pending_at(now)).take(limit).count())
    }

    async fn decide_confirmation(
        &self,
        id: &str,
        decision: Decision,
        now: i64,
    ) -> Result<Option<Arc<ConfirmationRecord>>> {
        let write = {
            let mut confirmations = self.confirmations();
            let pending = confirmations.get(id).filter(|confirmation| confirmation.is_pending_at(now));
            let Some(before) = pending.cloned() else { return Ok(None) };
            let decided = before.with_decision(decision);
            self.write_confirmation(&mut confirmations, Some(before), decided)
        };
        write.await.map(Some)
    }

    async fn withdraw_approval(&self, id: &str) -> Result<bool> {
        let write = {
            let mut confirmations = self.confirmations();
            let is_approved = |known: &&Arc<ConfirmationRecord>| known.status == ConfirmationStatus::Approved;
            let Some(before) = confirmations.get(id).filter(is_approved).cloned() else { return Ok(false) };
            let withdrawn = before.without_secrets(ConfirmationStatus::Expired);
            self.write_confirmation(&mut confirmations, Some(before), withdrawn)
        };
        write.await.map(|_| true)
    }

    async fn approved_confirmations(&self) -> Result<Vec<Arc<ConfirmationRecord>>> {
        Ok(self.confirmations().approved())
    }

    async fn create_task(&self, task: TaskRecord) -> Result<Arc<TaskRecord>> {
        self.write_new_task(task).await
    }

    async fn task(&self, id: &str) -> Result<Option<Arc<TaskRecord>>> {
        Ok(lock(&self.tasks).get(id).cloned())
    }

    async fn task_page(&self, query: TaskQuery<'_>) -> Result<Vec<Arc<TaskRecord>>> {
        Ok(lock(&self.tasks).page(query))
    }

    async fn change_task(&self, id: &str, change: TaskChange, now: i64) -> Result<Option<Arc<TaskRecord>>> {
        self.write_task_change(id, change, now).await
    }

    async fn adopt_tasks(&self, limit: usize) -> Result<Vec<Arc<TaskRecord>>> {
        Ok(lock(&self.tasks).adopt(limit))
    }

    async fn block(&self, block: BlockRecord) -> Result<()> {
        let (key, until) = (block.key(), block.until);
        let (before, written) = {
            let mut blocks = self.blocks();
            let before = blocks.get(&key).copied();
            if before.is_some_and(|before| before >= until) {
                return Ok(());
            }
            blocks.insert(key.clone(), until);
            (before, self.journal.write(Change::Block(block), Durability::Committed))
        };
        let written = written.wait().await;
        let mut blocks = self.blocks();
        if written.is_err() && blocks.get(&key) == Some(&until) {
            match before {
                Some(before) => blocks.insert(key, before),
                None => blocks.remove(&key),
            };
        }
        written
    }

    async fn blocked_until(&self, principal: &Principal, client_id: &str) -> Result<Option<i64>> {
        let blocks = self.blocks();
        // Every call checks this, and most stores have no block: build no key then.
        if blocks.is_empty() {
            return Ok(None);
        }
        Ok(blocks.get(&BlockRecord::new(principal, client_id, 0).key()).copied())
    }

    async fn unblock(&self, principal: &Principal, client_id: &str, now: i64) -> Result<bool> {
        let block = BlockRecord::new(principal, client_id, 0);
        let key = block.key();
        let (until, written) = {
            let mut blocks = self.blocks();
            let Some(until) = blocks.remove(&key) else { return Ok(false) };
            let deletion = Deletion { blocks: vec![block], ..Deletion::default() };
            (until, self.journal.write(Change::Deletion(deletion), Durability::Committed))
        };
        let written = written.wait().await;
        if written.is_err() {
            self.blocks().entry(key).or_insert(until);
        }
        written.map(|()| until > now)
    }

    async fn append_audit(&self, entry: AuditEntry) -> Result<()> {
        self.journal.write(Change::Audit(AuditText::new(&entry)), Durability::Relaxed).wait().await
    }

    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        self.journal.audit_rows(after, limit).await
    }

    async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage> {
        self.journal.audit_page(query).await
    }

    async fn session_page(&self, query: SessionQuery<'_>) -> Result<SessionPage> {
        Ok(self.list_sessions(query))
    }

    async fn sweep(&self, now: i64) -> Result<SweepOutcome> {
        let (sessions, deleted) = self.sweep_sessions(now);
        let confirmations = self.sweep_confirmations(now, &deleted);
        self.sweep_blocks(now);
        self.sweep_tasks(now.saturating_sub(RETENTION_MS), &deleted);
        self.delete(self.remove_unused_toolsets(now.saturating_sub(RETENTION_MS)));
        Ok(SweepOutcome { sessions, confirmations })
    }

    async fn inactive_sessions(&self, sessions: &[String], now: i64) -> Result<Vec<String>> {
        let is_active = |id: &str| {
            let shard = self.shard(id);
            shard.get(id).is_some_and(|entry| entry.record.status_at(now) == SessionStatus::Active)
        };
        Ok(sessions.iter().filter(|id| !is_active(id)).cloned().collect())
    }

    async fn is_toolset_in_use(&self, toolset: &str) -> Result<bool> {
        let uses = |entry: &SessionEntry| {
            entry.record.status == SessionStatus::Active && entry.record.toolset == toolset
        };
        Ok(self.shards.iter().any(|shard| lock(shard).values().any(uses)))
    }

    async fn put_toolset(&self, toolset: ToolsetRecord) -> Result<()> {
        self.write_toolset(toolset).await
    }

    async fn touch_toolset(&self, id: &str, now: i64) -> Result<bool> {
        self.use_toolset(id, now).await
    }

    async fn toolset(&self, id: &str) -> Result<Option<ToolsetRecord>> {
        self.read_toolset(id).await
    }

    async fn toolsets(&self) -> Result<Vec<(ToolsetInfo, u64)>> {
        Ok(self.list_toolsets())
    }

    async fn delete_unused_toolsets(&self, used_before: i64) -> Result<Vec<String>> {
        let deletion = self.remove_unused_toolsets(used_before);
        let ids = deletion.toolsets.clone();
        if !ids.is_empty() {
            self.journal.write(Change::Deletion(deletion), Durability::Committed).wait().await?;
        }
        Ok(ids)
    }

    async fn put_minute(&self, minute: MinuteRecord) -> Result<()> {
        self.journal.write(Change::Minute(minute), Durability::Relaxed).wait().await
    }

    async fn minutes(&self, from: i64) -> Result<Vec<MinuteRecord>> {
        self.journal.minutes(from).await
    }

    async fn flush(&self) -> Result<()> {
        self.journal.flush(LostChanges::Report).wait().await
    }

    async fn test_write(&self) -> Result<()> {
        self.journal.write(Change::WriteTest, Durability::Committed).wait().await
    }
}

impl SessionEntry {
    /// Replaces everything but turn and meters.
    fn replace_record(&mut self, record: SessionRecord) {
        let SessionRecord { turn, spent, .. } = &*self.record;
        self.record = Arc::new(SessionRecord { turn: *turn, spent: spent.clone(), ..record });
    }
}

impl<J: Journal> Memory<J> {
    /// Replaces a confirmation. The future resolves when it is on disk, and restores `before` if the write fails.
    fn write_confirmation<'a>(
        &'a self,
        confirmations: &mut Confirmations,
        before: Option<Arc<ConfirmationRecord>>,
        current: ConfirmationRecord,
    ) -> impl Future<Output = Result<Arc<ConfirmationRecord>>> + use<'a, J> {
        let current = Arc::new(current);
        confirmations.insert(Arc::clone(&current));
        let written = self.journal.write(Change::Confirmation(Arc::clone(&current)), Durability::Committed);
        async move {
            let written = written.wait().await;
            if written.is_err() {
                self.confirmations().restore(&current, before);
            }
            written.map(|()| current)
        }
    }

    /// The settlement that came first, once it is on disk.
    async fn earlier_settlement(&self, session: &str, execution: &str) -> Result<SettleOutcome> {
        self.journal.flush(LostChanges::Ignore).wait().await?;
        let settling = self.with_execution(session, execution, |known| match &known.stage {
            ExecutionStage::Settling(envelope) => Some(Arc::clone(envelope)),
            _ => None,
        });
        if let Some(envelope) = settling.flatten() {
            return Ok(SettleOutcome::AlreadySettled(envelope));
        }
        match self.execution(session, execution).await?.map(|record| record.status) {
            Some(ExecutionStatus::Finished(envelope)) => Ok(SettleOutcome::AlreadySettled(envelope)),
            // It was lost on the way to the disk.
            Some(_) => Err(Error::Unavailable("an earlier settlement failed".to_owned())),
            None => Ok(SettleOutcome::Unclaimed),
        }
    }
}

/// A settlement on its way to the disk. If its caller goes away it counts as finished: the write continues.
struct UnwrittenSettlement<'a, J: Journal> {
    memory: &'a Memory<J>,
    session: &'a str,
    execution: &'a str,
    bytes: usize,
    has_failed: bool,
}

impl<J: Journal> Drop for UnwrittenSettlement<'_, J> {
    fn drop(&mut self) {
        let has_failed = self.has_failed;
        self.memory.with_execution(self.session, self.execution, |known| match &known.stage {
            // The outcome is not on disk: the same as if this process had died while it ran.
            _ if has_failed => known.stage = ExecutionStage::Orphaned,
            ExecutionStage::Settling(envelope) => {
                known.stage = ExecutionStage::Finished(Arc::clone(envelope))
            }
            _ => {}
        });
        if !has_failed {
            self.memory.cache_envelope(self.session, self.execution, self.bytes);
        }
    }
}
