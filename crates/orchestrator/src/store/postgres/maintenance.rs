//! The background task of the store: renews the lease, and cleans up after lost connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use toolwright_postgres::{Error, Parameters, Pool};

use super::lease::Lease;
use super::postgres_rows::get;
use super::statements;
use crate::store::records::Durability;

/// A change that a lost connection may have left in the database. Ids are keys.
#[derive(Debug)]
pub(super) enum Cleanup {
    /// A claim whose reply was lost, so that its caller does not run it: released if it was stored.
    TakeBackClaim {
        session: String,
        execution: String,
        confirmation: Option<String>,
        /// The keys of its rate limits.
        rates: Vec<String>,
        owner: String,
        attempt: i64,
    },
    /// An execution has run, and its settlement could not be recorded: the same as if this process had died.
    Abandon { session: String, execution: String },
}

pub(super) struct Maintenance {
    pub(super) pool: Pool,
    pub(super) lease: Arc<Lease>,
    /// How long a statement whose reply was lost may still run in the server.
    pub(super) max_statement_age: Duration,
    pub(super) cleanups: mpsc::UnboundedReceiver<Cleanup>,
    pub(super) closing: watch::Receiver<bool>,
    pub(super) writer: JoinHandle<()>,
}

impl Maintenance {
    /// Runs until the store is closed or dropped, and then ends the lease.
    pub(super) async fn run(mut self) {
        let mut pending = Vec::new();
        let mut ticks = interval((self.lease.length() / 3).max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.renew_lease().await,
                Some(cleanup) = self.cleanups.recv() => {
                    pending.push((cleanup, Instant::now() + self.max_statement_age));
                }
                _ = self.closing.changed() => break,
            }
            self.clean_up(&mut pending).await;
        }
        // The writer records the queued settlements first, and may add cleanups.
        _ = (&mut self.writer).await;
        while let Ok(cleanup) = self.cleanups.try_recv() {
            pending.push((cleanup, Instant::now()));
        }
        self.clean_up(&mut pending).await;
        if let Err(error) = self.pool.query(statements::END_LEASE, &[&self.lease.instance()]).await {
            tracing::warn!(%error, "could not end the store's lease; it expires automatically");
        }
    }

    async fn renew_lease(&self) {
        if let Err(error) = self.lease.keep(&self.pool, Durability::Relaxed).await {
            tracing::warn!(%error, "could not renew the store's lease");
        }
    }

    /// Runs each cleanup until it has found its claim, or until its deadline has passed.
    async fn clean_up(&self, pending: &mut Vec<(Cleanup, Instant)>) {
        let mut remaining = Vec::new();
        let mut is_reachable = true;
        for (cleanup, deadline) in pending.drain(..) {
            // After one failure the others wait for the next round, so that the renewal of the lease is not delayed.
            let is_done = if is_reachable { self.run_cleanup(&cleanup).await } else { Ok(false) };
            is_reachable &= is_done.is_ok();
            let is_over = is_reachable && Instant::now() >= deadline;
            if !(is_done.unwrap_or(false) || is_over) {
                remaining.push((cleanup, deadline));
            }
        }
        *pending = remaining;
    }

    /// False if the claim is not in the database, but may still arrive.
    async fn run_cleanup(&self, cleanup: &Cleanup) -> Result<bool, Error> {
        match cleanup {
            Cleanup::TakeBackClaim { session, execution, confirmation, rates, owner, attempt } => {
                let parameters: Parameters<'_> = &[session, execution, confirmation, rates, owner, attempt];
                let rows = self.pool.query(statements::TAKE_BACK_CLAIM, parameters).await?;
                Ok(rows.first().is_some_and(|row| get(row, "is_done").unwrap_or(false)))
            }
            Cleanup::Abandon { session, execution } => {
                self.pool.query(statements::ABANDON, &[session, execution, &self.lease.instance()]).await?;
                Ok(true)
            }
        }
    }
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
