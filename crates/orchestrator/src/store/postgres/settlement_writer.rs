//! Records settlements and the audit. All of a process go through one writer: the audit is a chain, so its rows have
//! to be written in order, and those that wait together are written in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use toolwright_contract::Envelope;
use toolwright_postgres::{Connection, Error as PostgresError, Parameters, Pool};
use toolwright_registry::hex;

use super::maintenance::Cleanup;
use super::postgres_rows::{get, parse};
use super::{postgres_audit, statements};
use crate::store::audit_gap::AuditGap;
use crate::store::chain::{self, Chain, Head};
use crate::store::records::{AuditEntry, AuditRow, Durability, SettleOutcome};
use crate::store::{Error, Result};

const MAX_BATCH: usize = 256;
const MAX_BATCH_BYTES: usize = 8 << 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A settlement or an audit entry to record.
pub(super) struct WriteRequest {
    /// `None` for an audit entry alone.
    pub(super) settlement: Option<SettlementRow>,
    pub(super) entry: AuditEntry,
    pub(super) durability: Durability,
    pub(super) reply: oneshot::Sender<Result<SettleOutcome>>,
}

/// Its ids are keys.
pub(super) struct SettlementRow {
    pub(super) session: String,
    pub(super) execution: String,
    pub(super) envelope: String,
    pub(super) args: Option<Arc<str>>,
}

pub(super) struct SettlementWriter {
    pool: Pool,
    instance: String,
    cleanups: mpsc::UnboundedSender<Cleanup>,
    /// How long it retries while the server is unavailable.
    retry_timeout: Duration,
    /// This process's chain.
    chain: Chain,
    /// State for a statement whose reply was lost: the head of the chain if it ran, and its batch.
    unconfirmed: Option<(Chain, u64)>,
    batch: u64,
    /// The audit entries that were lost since the last entry about a gap.
    gap: AuditGap,
    /// The time of the last entry that was written.
    last_at: Option<i64>,
    chains: u32,
    connection_opened_at: Option<std::time::Instant>,
}

/// The settlements of a batch that do not count, by place. If there are any, nothing of the batch was recorded.
type RefusedSettlements = BTreeMap<usize, Result<SettleOutcome>>;

impl SettlementWriter {
    pub(super) fn new(
        pool: Pool,
        instance: String,
        cleanups: mpsc::UnboundedSender<Cleanup>,
        retry_timeout: Duration,
    ) -> Self {
        Self {
            pool,
            chain: Chain::new(&instance),
            instance,
            cleanups,
            retry_timeout,
            unconfirmed: None,
            batch: 0,
            gap: AuditGap::default(),
            last_at: None,
            chains: 1,
            connection_opened_at: None,
        }
    }

    /// Runs until the store is closed or dropped and all requests are recorded.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<WriteRequest>,
        mut closing: watch::Receiver<bool>,
    ) {
        let mut waiting = Vec::new();
        let mut is_closing = false;
        loop {
            tokio::select! {
                count = requests.recv_many(&mut waiting, MAX_BATCH) => {
                    if count == 0 {
                        break;
                    }
                    while !waiting.is_empty() {
                        let mut batch = self.take_gap();
                        batch.extend(waiting.drain(..batch_size(&waiting)));
                        self.write(batch).await;
                    }
                }
                _ = closing.changed(), if !is_closing => {
                    is_closing = true;
                    requests.close();
                }
            }
        }
        let gap = self.take_gap();
        self.write(gap).await;
    }

    /// The entry about lost audit entries, if there are any.
    fn take_gap(&mut self) -> Vec<WriteRequest> {
        let gap = std::mem::take(&mut self.gap);
        let request = |gap: AuditGap| WriteRequest::audit_alone(gap.entry());
        Some(gap).filter(|gap| !gap.is_empty()).map(request).into_iter().collect()
    }

    async fn write(&mut self, mut requests: Vec<WriteRequest>) {
        self.batch += 1;
        let start = Instant::now();
        while !requests.is_empty() {
            match self.attempt(&requests).await {
                Ok(refused) if refused.is_empty() => requests.drain(..).for_each(WriteRequest::succeed),
                Ok(refused) => requests = without_refused(requests, refused),
                // One bad row must not fail the others.
                Err(PostgresError::Rejected { .. }) if requests.len() > 1 => {
                    for request in std::mem::take(&mut requests) {
                        Box::pin(self.write(vec![request])).await;
                    }
                }
                Err(error) => {
                    let is_final = matches!(error, PostgresError::Rejected { .. }) && !error.is_duplicate();
                    if is_final || start.elapsed() >= self.retry_timeout {
                        let error = Error::from(error);
                        for request in requests.drain(..) {
                            self.gap.add(&request.entry);
                            request.fail(&error, &self.cleanups);
                        }
                    } else {
                        sleep(RETRY_INTERVAL).await;
                    }
                }
            }
        }
    }

    async fn attempt(
        &mut self,
        requests: &[WriteRequest],
    ) -> std::result::Result<RefusedSettlements, PostgresError> {
        let mut connection = self.pool.get().await?;
        // After a crash of the server, relaxed rows may be missing.
        let is_new = self.connection_opened_at != connection.opened_at();
        if (is_new || self.unconfirmed.is_some()) && self.resume(&mut connection).await? {
            return Ok(RefusedSettlements::new());
        }
        let mut chain = self.chain.clone();
        // The database assigns the numbers.
        let append = |request: &WriteRequest| chain.append(0, chain::text(&request.entry));
        let rows: Vec<AuditRow> = requests.iter().map(append).collect();
        let outcome = self.send(&mut connection, requests, &rows).await;
        match &outcome {
            Ok(refused) if refused.is_empty() => {
                self.chain = chain;
                self.unconfirmed = None;
                self.last_at = requests.last().map(|request| request.entry.at);
            }
            Err(error) if matches!(error, PostgresError::NoReply(_)) || error.is_duplicate() => {
                self.unconfirmed = Some((chain, self.batch));
            }
            _ => {}
        }
        outcome
    }

    async fn send(
        &self,
        connection: &mut Connection,
        requests: &[WriteRequest],
        rows: &[AuditRow],
    ) -> std::result::Result<RefusedSettlements, PostgresError> {
        let settlements = || requests.iter().map(|request| request.settlement.as_ref());
        let sessions: Vec<_> = settlements().map(|row| row.map(|row| &*row.session)).collect();
        let executions: Vec<_> = settlements().map(|row| row.map(|row| &*row.execution)).collect();
        let envelopes: Vec<_> = settlements().map(|row| row.map(|row| &*row.envelope)).collect();
        let args: Vec<_> = settlements().map(|row| row.and_then(|row| row.args.as_deref())).collect();
        let fields: Vec<_> = requests.iter().map(|request| postgres_audit::fields(&request.entry)).collect();
        let position = (self.chain.position() + 1).cast_signed();
        let previous: Vec<_> = rows.iter().map(|row| &*row.previous).collect();
        let hashes: Vec<_> = rows.iter().map(|row| &*row.hash).collect();
        let entries: Vec<_> = rows.iter().map(|row| &*row.entry).collect();
        let relaxed = requests.iter().all(|request| request.durability == Durability::Relaxed);
        let parameters: Parameters<'_> = &[
            &sessions,
            &executions,
            &envelopes,
            &args,
            &self.chain.name(),
            &position,
            &previous,
            &hashes,
            &entries,
            &fields,
            &relaxed,
        ];
        let refused = if self.chain.position() == 0 {
            let register = connection.query(statements::REGISTER_HEAD, &[]).await?;
            let last = read_head(&register).map(|(position, hash)| {
                let chain = chain::REGISTER.to_owned();
                Head { chain, position, hash }
            });
            let row = chain::registration(last, self.chain.name());
            let position = row.position.cast_signed();
            let registration: Parameters<'_> = &[&position, &row.previous, &row.hash];
            connection.query(statements::SETTLE_AND_REGISTER, &[parameters, registration].concat()).await?
        } else {
            connection.query(statements::SETTLE, parameters).await?
        };
        let outcome = |row| {
            let place = get::<i64>(row, "place").ok()?;
            let place = usize::try_from(place - 1).ok()?;
            Some((place, refused_outcome(row, requests.get(place)?)))
        };
        Ok(refused.iter().filter_map(outcome).collect())
    }

    /// Reads where the chain ends in the database. True when that proves that the current batch is recorded.
    async fn resume(&mut self, connection: &mut Connection) -> std::result::Result<bool, PostgresError> {
        let rows = connection.query(statements::CHAIN_HEAD, &[&self.chain.name()]).await?;
        let stored = read_head(&rows);
        let is_stored = |chain: &Chain| match &stored {
            None => chain.position() == 0,
            Some((position, hash)) => chain.position() == *position && hex(&chain.head()) == *hash,
        };
        self.connection_opened_at = connection.opened_at();
        if is_stored(&self.chain) {
            return Ok(false);
        }
        if let Some((chain, batch)) = self.unconfirmed.take_if(|(chain, _)| is_stored(chain)) {
            self.chain = chain;
            return Ok(batch == self.batch);
        }
        self.chains += 1;
        self.unconfirmed = None;
        let remaining = stored.map_or(0, |(position, _)| position);
        self.gap.entries += self.chain.position().saturating_sub(remaining);
        self.gap.to = self.gap.to.max(self.last_at);
        tracing::warn!(
            chain = self.chain.name(),
            position = self.chain.position(),
            "the database has lost audit rows of this process: starting a new audit chain"
        );
        self.chain = Chain::new(format!("{}.{}", self.instance, self.chains));
        Ok(false)
    }
}

impl WriteRequest {
    /// An audit entry without a waiting caller.
    fn audit_alone(entry: AuditEntry) -> Self {
        Self { settlement: None, entry, durability: Durability::Relaxed, reply: oneshot::channel().0 }
    }

    fn succeed(self) {
        // The caller may have gone away.
        _ = self.reply.send(Ok(SettleOutcome::Recorded));
    }

    fn fail(self, error: &Error, cleanups: &mpsc::UnboundedSender<Cleanup>) {
        if let Some(SettlementRow { session, execution, .. }) = self.settlement {
            _ = cleanups.send(Cleanup::Abandon { session, execution });
        }
        _ = self.reply.send(Err(error.clone()));
    }
}

/// The position and hash of the last row of a chain.
fn read_head(rows: &[Row]) -> Option<(u64, String)> {
    let row = rows.first()?;
    Some((get::<i64>(row, "position").ok()?.cast_unsigned(), get::<String>(row, "hash").ok()?))
}

/// How many of these requests make one transaction.
fn batch_size(waiting: &[WriteRequest]) -> usize {
    let mut bytes = 0;
    let fitting = waiting.iter().take_while(|request| {
        bytes += request.settlement.as_ref().map_or(0, |row| row.envelope.len());
        bytes <= MAX_BATCH_BYTES
    });
    fitting.count().max(1)
}

/// Answers the refused requests, and returns the others.
fn without_refused(requests: Vec<WriteRequest>, mut refused: RefusedSettlements) -> Vec<WriteRequest> {
    let mut remaining = Vec::new();
    for (place, request) in requests.into_iter().enumerate() {
        match refused.remove(&place) {
            Some(outcome) => _ = request.reply.send(outcome),
            None => remaining.push(request),
        }
    }
    remaining
}

/// Why a settlement was refused: it is settled already, another instance has claimed it, it was never claimed, or has
/// no session.
fn refused_outcome(row: &Row, request: &WriteRequest) -> Result<SettleOutcome> {
    match get::<Option<String>>(row, "recorded")? {
        Some(envelope) => Ok(SettleOutcome::AlreadySettled(parse::<Envelope>(&envelope)?.into())),
        None => match get::<Option<bool>>(row, "has_session")? {
            None => Ok(SettleOutcome::TakenOver),
            Some(true) => Ok(SettleOutcome::Unclaimed),
            Some(false) => Err(Error::NoSession(request.entry.session.clone())),
        },
    }
}
