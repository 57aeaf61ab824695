//! Records what came of calls, and the audit. All settlements of a process go through one writer: the audit is a chain,
//! so its rows have to be written in order, and those that wait together are written in one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};
use toolwright_contract::Envelope;
use toolwright_postgres::{Borrowed, Failure, Parameters, Pool};

use super::keeper::Loose;
use super::rows::{get, parsed};
use crate::store::chain::{self, Chain};
use crate::store::records::{AuditEntry, AuditRow, Durability, Settled};
use crate::store::{Error, Result};

const SETTLE: &str = "SELECT place, has_session, recorded FROM settle($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const HEAD: &str = "SELECT position, hash FROM audit WHERE chain = $1 ORDER BY position DESC LIMIT 1";

/// How many settlements, and how many bytes of envelopes, one transaction takes at the most.
const MOST: usize = 256;
const MOST_BYTES: usize = 8 << 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Something to be recorded.
pub(super) struct Job {
    /// `None` for an audit entry alone.
    pub(super) settled: Option<ToSettle>,
    pub(super) entry: AuditEntry,
    pub(super) durability: Durability,
    pub(super) answer: oneshot::Sender<Result<Settled>>,
}

pub(super) struct ToSettle {
    /// For people; the others are keys.
    pub(super) name: String,
    pub(super) session: String,
    pub(super) execution: String,
    pub(super) envelope: String,
}

pub(super) struct Writer {
    pool: Arc<Pool>,
    instance: String,
    loose: mpsc::UnboundedSender<Loose>,
    /// How long it waits for a server that is away.
    patience: Duration,
    chain: Link,
    /// Where the chain ends if a statement whose answer was lost has been done after all, and of which batch it was.
    doubt: Option<(Link, u64)>,
    batch: u64,
    chains: u32,
    connection: Option<u64>,
}

/// The end of a chain.
#[derive(Clone)]
struct Link {
    name: String,
    chain: Chain,
    position: u64,
    hash: Option<String>,
}

enum Outcome {
    Done,
    /// Nothing was done, since these do not count; and why.
    Uncounted(Uncounted),
}

/// By place: what each is told.
type Uncounted = BTreeMap<usize, Result<Settled>>;

impl Writer {
    pub(super) fn new(
        pool: Arc<Pool>,
        instance: String,
        loose: mpsc::UnboundedSender<Loose>,
        patience: Duration,
    ) -> Self {
        let chain = Link::new(instance.clone());
        Self { pool, instance, loose, patience, chain, doubt: None, batch: 0, chains: 1, connection: None }
    }

    /// Works until the store is closed or dropped, and everything that waits is recorded.
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>, mut closing: watch::Receiver<bool>) {
        let mut waiting = Vec::new();
        let mut is_closing = false;
        loop {
            tokio::select! {
                count = jobs.recv_many(&mut waiting, MOST) => {
                    if count == 0 {
                        break;
                    }
                    while !waiting.is_empty() {
                        let batch = waiting.drain(..fitting(&waiting)).collect();
                        self.write(batch).await;
                    }
                }
                _ = closing.changed(), if !is_closing => {
                    is_closing = true;
                    jobs.close();
                }
            }
        }
    }

    async fn write(&mut self, mut jobs: Vec<Job>) {
        self.batch += 1;
        let start = Instant::now();
        while !jobs.is_empty() {
            match self.attempt(&jobs).await {
                Ok(Outcome::Done) => {
                    jobs.drain(..).for_each(Job::succeed);
                }
                Ok(Outcome::Uncounted(places)) => jobs = counted(jobs, places),
                // Somebody else's bad row must not fail the others.
                Err(Failure::Refused { .. }) if jobs.len() > 1 => {
                    for job in std::mem::take(&mut jobs) {
                        Box::pin(self.write(vec![job])).await;
                    }
                }
                Err(failure) => {
                    let is_final = matches!(failure, Failure::Refused { .. }) && !failure.is_duplicate();
                    if is_final || start.elapsed() >= self.patience {
                        let error = Error::from(failure);
                        jobs.drain(..).for_each(|job| job.fail(&error, &self.loose));
                    } else {
                        sleep(PAUSE).await;
                    }
                }
            }
        }
    }

    async fn attempt(&mut self, jobs: &[Job]) -> std::result::Result<Outcome, Failure> {
        let pool = Arc::clone(&self.pool);
        let mut connection = pool.borrow().await?;
        // A server that went down may have lost what was relaxed.
        if (self.connection != connection.serial() || self.doubt.is_some())
            && self.resume(&mut connection).await?
        {
            return Ok(Outcome::Done);
        }
        let mut link = self.chain.clone();
        let rows: Vec<AuditRow> = jobs.iter().map(|job| link.append(&job.entry)).collect();
        match self.send(&mut connection, jobs, &rows).await {
            Ok(places) if places.is_empty() => {
                self.chain = link;
                self.doubt = None;
                Ok(Outcome::Done)
            }
            Ok(places) => Ok(Outcome::Uncounted(places)),
            Err(failure) => {
                if matches!(failure, Failure::Lost(_)) || failure.is_duplicate() {
                    self.doubt = Some((link, self.batch));
                }
                Err(failure)
            }
        }
    }

    async fn send(
        &self,
        connection: &mut Borrowed<'_>,
        jobs: &[Job],
        rows: &[AuditRow],
    ) -> std::result::Result<Uncounted, Failure> {
        let settled = || jobs.iter().map(|job| job.settled.as_ref());
        let sessions: Vec<_> = settled().map(|settled| settled.map(|one| &*one.session)).collect();
        let executions: Vec<_> = settled().map(|settled| settled.map(|one| &*one.execution)).collect();
        let envelopes: Vec<_> = settled().map(|settled| settled.map(|one| &*one.envelope)).collect();
        let position = (self.chain.position + 1).cast_signed();
        let previous: Vec<_> = rows.iter().map(|row| &*row.previous).collect();
        let hashes: Vec<_> = rows.iter().map(|row| &*row.hash).collect();
        let entries: Vec<_> = rows.iter().map(|row| &*row.entry).collect();
        let relaxed = jobs.iter().all(|job| job.durability == Durability::Relaxed);
        let parameters: Parameters<'_> = &[
            &sessions,
            &executions,
            &envelopes,
            &self.chain.name,
            &position,
            &previous,
            &hashes,
            &entries,
            &relaxed,
        ];
        let refused = connection.query(SETTLE, parameters).await?;
        let place = |row| get::<i64>(row, "place").ok().and_then(|place| usize::try_from(place - 1).ok());
        let told = |row| {
            let at = place(row)?;
            Some((at, told(row, jobs.get(at)?)))
        };
        Ok(refused.iter().filter_map(told).collect())
    }

    /// Finds out where the chain ends in the database. True when that proves that the present batch is recorded.
    async fn resume(&mut self, connection: &mut Borrowed<'_>) -> std::result::Result<bool, Failure> {
        let rows = connection.query(HEAD, &[&self.chain.name]).await?;
        let stored = rows.first().and_then(|row| {
            Some((get::<i64>(row, "position").ok()?.cast_unsigned(), get::<String>(row, "hash").ok()?))
        });
        self.connection = connection.serial();
        if self.chain.is_at(stored.as_ref()) {
            return Ok(false);
        }
        if let Some((link, batch)) = self.doubt.take_if(|(link, _)| link.is_at(stored.as_ref())) {
            self.chain = link;
            return Ok(batch == self.batch);
        }
        self.chains += 1;
        self.doubt = None;
        let position = self.chain.position;
        tracing::warn!(
            chain = self.chain.name,
            position,
            "the audit's chain ends elsewhere in the database: a new one begins"
        );
        self.chain = Link::new(format!("{}.{}", self.instance, self.chains));
        Ok(false)
    }
}

impl Link {
    fn new(name: String) -> Self {
        Self { chain: Chain::new(name.clone()), name, position: 0, hash: None }
    }

    /// The next row; the database gives it its number.
    fn append(&mut self, entry: &AuditEntry) -> AuditRow {
        let row = self.chain.link(0, chain::text(entry));
        self.position = row.position;
        self.hash = Some(row.hash.clone());
        row
    }

    fn is_at(&self, stored: Option<&(u64, String)>) -> bool {
        match (&self.hash, stored) {
            (None, None) => true,
            (Some(hash), Some((position, stored))) => hash == stored && self.position == *position,
            _ => false,
        }
    }
}

impl Job {
    fn succeed(self) {
        // Whoever asked may be gone.
        _ = self.answer.send(Ok(Settled::First));
    }

    fn fail(self, error: &Error, loose: &mpsc::UnboundedSender<Loose>) {
        if let Some(ToSettle { session, execution, .. }) = self.settled {
            _ = loose.send(Loose::Unsettled { session, execution });
        }
        _ = self.answer.send(Err(error.clone()));
    }
}

/// How many of these make one transaction.
fn fitting(waiting: &[Job]) -> usize {
    let mut bytes = 0;
    let fits = waiting.iter().take_while(|job| {
        bytes += job.settled.as_ref().map_or(0, |settled| settled.envelope.len());
        bytes <= MOST_BYTES
    });
    fits.count().max(1)
}

/// Answers those that do not count: somebody was faster, nobody had claimed them, or they have no session.
fn counted(jobs: Vec<Job>, mut places: Uncounted) -> Vec<Job> {
    let mut kept = Vec::new();
    for (place, job) in jobs.into_iter().enumerate() {
        match places.remove(&place) {
            Some(told) => _ = job.answer.send(told),
            None => kept.push(job),
        }
    }
    kept
}

/// Why a settlement does not count.
fn told(row: &tokio_postgres::Row, job: &Job) -> Result<Settled> {
    match get::<Option<String>>(row, "recorded")? {
        Some(envelope) => Ok(Settled::Earlier(parsed::<Envelope>(&envelope)?.into())),
        None if get(row, "has_session")? => Ok(Settled::Unclaimed),
        None => {
            let name = job.settled.as_ref().map(|settled| settled.name.clone());
            Err(Error::NoSession(name.unwrap_or_default()))
        }
    }
}
