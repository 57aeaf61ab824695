//! The store's operations in PostgreSQL.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use toolwright_contract::Principal;
use toolwright_postgres::{Connection, Error as PostgresError, Parameters};

use super::maintenance::Cleanup;
use super::postgres_rows::{
    self as rows, StoredDecision, get, get_only, json, key, synchronous_commit, variant_name,
};
use super::settlement_writer::{SettlementRow, WriteRequest};
use super::{Postgres, postgres_audit, postgres_tasks, statements};
use crate::store::audit_query::{AuditPage, AuditQuery};
use crate::store::rate_windows::{RateCharge, RateExceeded};
use crate::store::records::{
    AuditEntry, AuditRow, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord, Decision, Durability,
    ExecutionRecord, MinuteRecord, PendingQuery, PendingScope, SessionPage, SessionQuery, SessionRecord,
    SettleOutcome, Settlement, SweepOutcome, ToolsetInfo, ToolsetRecord,
};
use crate::store::task::{TaskChange, TaskQuery, TaskRecord};
use crate::store::{Backend, Error, RETAINED_PER_SESSION, RETENTION_MS, Result};

/// How many rows a sweep deletes in one transaction.
const DELETE_BATCH: i64 = 5_000;

impl Backend for Postgres {
    async fn create_session(&self, session: SessionRecord, durability: Durability) -> Result<()> {
        let parameters: Parameters<'_> = &[
            &key(&session.id),
            &json(&session)?,
            &session.turn.cast_signed(),
            &json(&session.spent)?,
            &variant_name(&session.status)?,
            &session.expires_at,
            &session.revision.cast_signed(),
            &session.created_at,
            &synchronous_commit(durability),
        ];
        let created = self.pool.query(statements::CREATE_SESSION, parameters).await?;
        if created.is_empty() { Err(Error::Exists(session.id)) } else { Ok(()) }
    }

    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>> {
        let rows = self.pool.query(statements::SESSION, &[&key(id)]).await?;
        Ok(rows.first().map(rows::session).transpose()?.map(Arc::new))
    }

    async fn begin_turn(&self, id: &str) -> Result<Arc<SessionRecord>> {
        let rows = self.pool.query(statements::BEGIN_TURN, &[&key(id)]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.to_owned()))?;
        rows::session(row).map(Arc::new)
    }

    async fn update_session(&self, session: &SessionRecord) -> Result<bool> {
        let parameters: Parameters<'_> = &[
            &key(&session.id),
            &json(session)?,
            &variant_name(&session.status)?,
            &session.expires_at,
            &session.revision.cast_signed(),
        ];
        let rows = self.pool.query(statements::UPDATE_SESSION, parameters).await?;
        if !get_only::<bool>(&rows, "is_known")? {
            return Err(Error::NoSession(session.id.clone()));
        }
        get_only(&rows, "is_changed")
    }

    async fn execution(&self, session: &str, execution: &str) -> Result<Option<ExecutionRecord>> {
        let ids: Parameters<'_> = &[&key(session), &key(execution), &self.lease.epoch().owner];
        self.pool.query(statements::EXECUTION, ids).await?.first().map(rows::execution).transpose()
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimOutcome> {
        loop {
            let epoch = self.lease.epoch();
            if claim.lease.is_some_and(|lease| lease != epoch.number) {
                return Ok(ClaimOutcome::LeaseExpired);
            }
            let outcome = self.claim_as(&claim, &epoch.owner).await?;
            if outcome != ClaimOutcome::LeaseExpired {
                return Ok(outcome);
            }
            // Begins the next epoch.
            self.lease.keep(&self.pool, Durability::Relaxed).await?;
        }
    }

    async fn spend_rates(&self, rates: &[RateCharge], now: i64) -> Result<Option<RateExceeded>> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let parameters: Parameters<'_> = &[&json(&rates)?, &now, &self.lease.epoch().owner, &attempt];
        let rows = self.pool.query(statements::SPEND_RATES, parameters).await?;
        rows.first().map_or(Ok(None), rows::rate_exceeded)
    }

    async fn settle(&self, settlement: Settlement) -> Result<SettleOutcome> {
        let row = SettlementRow {
            session: key(&settlement.session).into_owned(),
            execution: key(&settlement.execution).into_owned(),
            envelope: json(&*settlement.envelope)?,
            args: settlement.args,
        };
        self.write(Some(row), settlement.audit, settlement.durability).await
    }

    async fn release(&self, session: &str, execution: &str) -> Result<()> {
        let ids: Parameters<'_> = &[&key(session), &key(execution), &self.lease.instance()];
        Ok(self.pool.query(statements::RELEASE, ids).await.map(drop)?)
    }

    async fn create_confirmation(
        &self,
        mut confirmation: ConfirmationRecord,
    ) -> Result<Arc<ConfirmationRecord>> {
        let redacted = confirmation.redacted_args.take();
        let secrets = redacted.map(|redacted| std::mem::replace(&mut confirmation.args, redacted));
        let secrets = secrets.as_ref().map(json).transpose()?;
        let parameters: Parameters<'_> = &[
            &key(&confirmation.id),
            &key(&confirmation.session),
            &key(&confirmation.execution),
            &key(&confirmation.tool),
            &key(&confirmation.tool_version),
            &confirmation.digest.as_slice(),
            &json(&confirmation)?,
            &secrets,
            &confirmation.token_hash.as_slice(),
            &variant_name(&confirmation.status)?,
            &confirmation.created_at,
            &confirmation.expires_at,
            &key(&confirmation.principal),
        ];
        match self.pool.query(statements::CREATE_CONFIRMATION, parameters).await {
            Err(error) if error.is_duplicate() => Err(Error::Exists(confirmation.id)),
            created => confirmations(&created?)?
                .pop()
                .ok_or_else(|| Error::Corrupt("a confirmation was not stored".to_owned())),
        }
    }

    async fn confirmation(&self, id: &str) -> Result<Option<Arc<ConfirmationRecord>>> {
        Ok(confirmations(&self.pool.query(statements::CONFIRMATION, &[&key(id)]).await?)?.pop())
    }

    async fn pending_confirmations(&self, query: PendingQuery<'_>) -> Result<Vec<Arc<ConfirmationRecord>>> {
        confirmations(&pending_rows(&mut self.pool.get().await?, query).await?)
    }

    async fn closed_confirmations(&self, ids: &[String], now: i64) -> Result<Vec<String>> {
        let keys: Vec<_> = ids.iter().map(|id| key(id)).collect();
        let rows = self.pool.query(statements::CLOSED_CONFIRMATIONS, &[&keys, &now]).await?;
        let closed = rows.iter().map(|row| get::<String>(row, "id")).collect::<Result<HashSet<_>>>()?;
        Ok(ids.iter().filter(|id| closed.contains(&*key(id))).cloned().collect())
    }

    async fn count_pending(&self, principal: &str, now: i64, limit: usize) -> Result<usize> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pool.query(statements::COUNT_PENDING, &[&key(principal), &now, &limit]).await?;
        Ok(usize::try_from(count(&rows)?).unwrap_or_default())
    }

    async fn decide_confirmation(
        &self,
        id: &str,
        decision: Decision,
        now: i64,
    ) -> Result<Option<Arc<ConfirmationRecord>>> {
        let (status, decision, secrets) = StoredDecision::new(decision);
        let secrets = secrets.as_ref().map(json).transpose()?;
        let parameters: Parameters<'_> =
            &[&key(id), &variant_name(&status)?, &json(&decision)?, &now, &secrets];
        let rows = self.pool.query(statements::DECIDE_CONFIRMATION, parameters).await?;
        Ok(confirmations(&rows)?.pop())
    }

    async fn withdraw_approval(&self, id: &str) -> Result<bool> {
        Ok(!self.pool.query(statements::WITHDRAW_APPROVAL, &[&key(id)]).await?.is_empty())
    }

    async fn approved_confirmations(&self) -> Result<Vec<Arc<ConfirmationRecord>>> {
        confirmations(&self.pool.query(statements::APPROVED_CONFIRMATIONS, &[]).await?)
    }

    async fn create_task(&self, task: TaskRecord) -> Result<Arc<TaskRecord>> {
        self.insert_task(task).await
    }

    async fn task(&self, id: &str) -> Result<Option<Arc<TaskRecord>>> {
        self.read_task(id).await
    }

    async fn task_page(&self, query: TaskQuery<'_>) -> Result<Vec<Arc<TaskRecord>>> {
        postgres_tasks::read_page(&mut self.pool.get().await?, query).await
    }

    async fn change_task(&self, id: &str, change: TaskChange, now: i64) -> Result<Option<Arc<TaskRecord>>> {
        self.update_task(id, change, now).await
    }

    async fn adopt_tasks(&self, limit: usize) -> Result<Vec<Arc<TaskRecord>>> {
        self.take_orphaned_tasks(limit).await
    }

    async fn block(&self, block: BlockRecord) -> Result<()> {
        let BlockRecord { org, principal, client_id, until } = &block;
        let parameters: Parameters<'_> = &[&key(org), &key(principal), &key(client_id), until];
        Ok(self.pool.query(statements::BLOCK, parameters).await.map(drop)?)
    }

    async fn blocked_until(&self, principal: &Principal, client_id: &str) -> Result<Option<i64>> {
        let org = principal.org.as_deref().unwrap_or_default();
        let parameters: Parameters<'_> = &[&key(org), &key(&principal.id), &key(client_id)];
        let rows = self.pool.query(statements::BLOCKED_UNTIL, parameters).await?;
        rows.first().map(|row| get(row, "until")).transpose()
    }

    async fn unblock(&self, principal: &Principal, client_id: &str, now: i64) -> Result<bool> {
        let org = principal.org.as_deref().unwrap_or_default();
        let parameters: Parameters<'_> = &[&key(org), &key(&principal.id), &key(client_id)];
        let rows = self.pool.query(statements::UNBLOCK, parameters).await?;
        rows.first().map_or(Ok(false), |row| Ok(get::<i64>(row, "until")? > now))
    }

    async fn append_audit(&self, entry: AuditEntry) -> Result<()> {
        self.write(None, entry, Durability::Relaxed).await.map(drop)
    }

    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        audit_rows(&mut self.pool.get().await?, after, limit).await
    }

    async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage> {
        postgres_audit::read(&mut self.pool.get().await?, query).await
    }

    async fn session_page(&self, query: SessionQuery<'_>) -> Result<SessionPage> {
        postgres_audit::read_sessions(&self.pool, query).await
    }

    async fn sweep(&self, now: i64) -> Result<SweepOutcome> {
        let before = now - RETENTION_MS;
        let retained = i64::try_from(RETAINED_PER_SESSION).unwrap_or(i64::MAX);
        let mut connection = self.pool.get().await?;
        let sessions: Parameters<'_> = &[&before, &DELETE_BATCH];
        while count(&connection.query(statements::DELETE_SESSIONS, sessions).await?)? >= DELETE_BATCH {}
        let executions: Parameters<'_> = &[&retained, &before, &DELETE_BATCH];
        while count(&connection.query(statements::DELETE_EXECUTIONS, executions).await?)? >= DELETE_BATCH {}
        connection.query(statements::DELETE_CONFIRMATIONS, &[&before]).await?;
        connection.query(statements::DELETE_BLOCKS, &[&now]).await?;
        connection.query(statements::DELETE_RATES, &[&now]).await?;
        connection.query(postgres_tasks::DELETE_OLD, &[&before]).await?;
        let sessions = count(&connection.query(statements::EXPIRE_SESSIONS, &[&now]).await?)?;
        let expired = connection.query(statements::EXPIRE_CONFIRMATIONS, &[&now]).await?;
        connection.query(statements::DELETE_SECRETS, &[&now]).await?;
        connection.query(statements::DELETE_INSTANCES, &[]).await?;
        connection.query(statements::DELETE_TOOLSETS, &[&before]).await?;
        let sessions = usize::try_from(sessions).unwrap_or_default();
        Ok(SweepOutcome { sessions, confirmations: confirmations(&expired)? })
    }

    async fn inactive_sessions(&self, sessions: &[String], now: i64) -> Result<Vec<String>> {
        let keys: Vec<_> = sessions.iter().map(|id| key(id)).collect();
        let rows = self.pool.query(statements::INACTIVE_SESSIONS, &[&keys, &now]).await?;
        let inactive = rows.iter().map(|row| get::<String>(row, "id")).collect::<Result<HashSet<_>>>()?;
        Ok(sessions.iter().filter(|id| inactive.contains(&*key(id))).cloned().collect())
    }

    async fn is_toolset_in_use(&self, toolset: &str) -> Result<bool> {
        get_only(&self.pool.query(statements::IS_TOOLSET_IN_USE, &[&toolset]).await?, "is_in_use")
    }

    async fn put_toolset(&self, toolset: ToolsetRecord) -> Result<()> {
        let ToolsetInfo { id, created_at, used_at, tools, .. } = &toolset.info;
        let parameters: Parameters<'_> = &[id, created_at, used_at, &tools.cast_signed(), &&*toolset.content];
        Ok(self.pool.query(statements::PUT_TOOLSET, parameters).await.map(drop)?)
    }

    async fn touch_toolset(&self, id: &str, now: i64) -> Result<bool> {
        Ok(!self.pool.query(statements::TOUCH_TOOLSET, &[&key(id), &now]).await?.is_empty())
    }

    async fn toolset(&self, id: &str) -> Result<Option<ToolsetRecord>> {
        let rows = self.pool.query(statements::TOOLSET, &[&key(id)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let content = get::<Vec<u8>>(row, "content")?.into();
        Ok(Some(ToolsetRecord { info: rows::toolset_info(row)?, content }))
    }

    async fn toolsets(&self) -> Result<Vec<(ToolsetInfo, u64)>> {
        self.pool.query(statements::TOOLSETS, &[]).await?.iter().map(rows::toolset_use).collect()
    }

    async fn delete_unused_toolsets(&self, used_before: i64) -> Result<Vec<String>> {
        let rows = self.pool.query(statements::DELETE_TOOLSETS, &[&used_before]).await?;
        rows.iter().map(|row| get(row, "id")).collect()
    }

    async fn put_minute(&self, minute: MinuteRecord) -> Result<()> {
        let MinuteRecord { at, process, content } = &minute;
        let parameters: Parameters<'_> = &[at, &key(process), &&**content, &(at - RETENTION_MS)];
        Ok(self.pool.query(statements::PUT_MINUTE, parameters).await.map(drop)?)
    }

    async fn minutes(&self, from: i64) -> Result<Vec<MinuteRecord>> {
        let rows = self.pool.query(statements::MINUTES, &[&from]).await?;
        let minute = |row| {
            let content = get::<String>(row, "content")?.into();
            Ok(MinuteRecord { at: get(row, "at")?, process: get(row, "process")?, content })
        };
        rows.iter().map(minute).collect()
    }

    async fn flush(&self) -> Result<()> {
        // A synchronous commit flushes all earlier ones.
        self.lease.keep(&self.pool, Durability::Committed).await
    }

    async fn test_write(&self) -> Result<()> {
        // Renews the lease, and commits that.
        self.flush().await
    }
}

impl Postgres {
    /// Claims in the name of an owner.
    async fn claim_as(&self, claim: &Claim, owner: &str) -> Result<ClaimOutcome> {
        let (session, execution) = (key(&claim.session), key(&claim.execution));
        let confirmation = claim.confirmation.as_deref().map(key);
        let charges = (!claim.charges.is_empty()).then(|| json(&claim.charges)).transpose()?;
        let rates = (!claim.rates.is_empty()).then(|| json(&claim.rates)).transpose()?;
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let parameters: Parameters<'_> = &[
            &session,
            &execution,
            &key(&claim.tool),
            &key(&claim.tool_version),
            &claim.digest.as_slice(),
            &claim.idempotent,
            &charges,
            &rates,
            &confirmation,
            &claim.now,
            &owner,
            &attempt,
            &(claim.durability == Durability::Relaxed),
        ];
        let mut connection = self.pool.get().await?;
        let unanswered = UnansweredClaim {
            cleanups: &self.cleanups,
            cleanup: Some(Cleanup::TakeBackClaim {
                session: session.clone().into_owned(),
                execution: execution.clone().into_owned(),
                confirmation: confirmation.clone().map(std::borrow::Cow::into_owned),
                rates: claim.rates.iter().map(|rate| rate.key.clone()).collect(),
                owner: owner.to_owned(),
                attempt,
            }),
        };
        let reply = connection.query(statements::CLAIM, parameters).await;
        if !matches!(reply, Err(PostgresError::NoReply(_))) {
            unanswered.mark_delivered();
        }
        let rows = reply?;
        let row = rows.first().ok_or_else(|| Error::Corrupt("a claim returned no row".to_owned()))?;
        rows::claim_outcome(row)?.ok_or_else(|| Error::NoSession(claim.session.clone()))
    }

    /// Takes back a claim of this process whose handler has not started, with all that it has spent. Does nothing if
    /// another process has taken it over.
    pub async fn take_back(&self, claim: &Claim) -> Result<()> {
        let rates: Vec<&str> = claim.rates.iter().map(|rate| &*rate.key).collect();
        let parameters: Parameters<'_> = &[
            &key(&claim.session),
            &key(&claim.execution),
            &claim.confirmation.as_deref().map(key),
            &rates,
            &self.lease.instance(),
        ];
        Ok(self.pool.query(statements::TAKE_BACK_LOST_CLAIM, parameters).await.map(drop)?)
    }

    /// Sends a settlement or an audit entry to the writer, and waits until it is recorded.
    async fn write(
        &self,
        settlement: Option<SettlementRow>,
        entry: AuditEntry,
        durability: Durability,
    ) -> Result<SettleOutcome> {
        let closed = || Error::Unavailable("it is closed".to_owned());
        let (reply, recorded) = oneshot::channel();
        let request = WriteRequest { settlement, entry, durability, reply };
        self.writes.send(request).await.map_err(|_| closed())?;
        recorded.await.map_err(|_| closed())?
    }

    /// Moves the blocks that servers of the version before have stored as sessions.
    pub(super) async fn move_blocks(&self) -> Result<()> {
        for row in &self.pool.query(statements::SESSION_BLOCKS, &[]).await? {
            let session = rows::session(row)?;
            if let Some(block) = BlockRecord::from_session(&session) {
                self.block(block).await?;
                self.pool.query(statements::END_SESSION_BLOCK, &[&key(&session.id)]).await?;
            }
        }
        Ok(())
    }
}

/// A claim without a reply: it may be in the database although its caller does not run it. When this is dropped
/// before a reply has come, the claim is taken back in the background.
struct UnansweredClaim<'a> {
    cleanups: &'a mpsc::UnboundedSender<Cleanup>,
    cleanup: Option<Cleanup>,
}

impl UnansweredClaim<'_> {
    fn mark_delivered(mut self) {
        self.cleanup = None;
    }
}

impl Drop for UnansweredClaim<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.cleanup.take() {
            // If maintenance has ended, so has the lease, and with it all claims.
            _ = self.cleanups.send(cleanup);
        }
    }
}

/// Up to `limit` rows of all chains after the row with this number.
pub(super) async fn audit_rows(
    connection: &mut Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditRow>> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let last: i64 = get_only(&connection.query(statements::AUDIT_HORIZON, &[]).await?, "last")?;
    let rows = connection.query(statements::AUDIT_ROWS, &[&after, &last, &limit]).await?;
    rows.iter().map(rows::audit).collect()
}

/// A page of the pending confirmations.
pub(super) async fn pending_rows(connection: &mut Connection, query: PendingQuery<'_>) -> Result<Vec<Row>> {
    let (statement, scope) = match query.scope {
        PendingScope::All => (statements::PENDING, key("")),
        PendingScope::Session(id) => (statements::PENDING_OF_SESSION, key(id)),
        PendingScope::Principal(principal) => (statements::PENDING_OF_PRINCIPAL, key(principal)),
    };
    let (at, id) = query.after.map_or((i64::MIN, key("")), |(at, id)| (at, key(id)));
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    Ok(connection.query(statement, &[&at, &id, &limit, &scope]).await?)
}

fn confirmations(rows: &[Row]) -> Result<Vec<Arc<ConfirmationRecord>>> {
    rows.iter().map(|row| rows::confirmation(row).map(Arc::new)).collect()
}

fn count(rows: &[Row]) -> Result<i64> {
    get_only(rows, "count")
}
