//! What goes on behind the calls: the lease is renewed, and loose ends are tied up once the server can be reached.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use toolwright_postgres::{Failure, Parameters, Pool};

use super::rows::get;

const RENEW: &str = "SELECT set_config('synchronous_commit', 'off', true), renew($1, $2)";
const END: &str = "DELETE FROM instance WHERE id = $1";
const UNCLAIM: &str = "SELECT unclaim($1, $2, $3, $4, $5, $6) AS done";
const GIVE_UP: &str = "UPDATE execution SET owner = NULL
    WHERE session = $1 AND id = $2 AND owner = $3 AND envelope IS NULL";

/// What a call has left behind when the server went away in the middle of it. Ids are keys.
#[derive(Debug)]
pub(super) enum Loose {
    /// A claim without an answer: if it was made, nobody runs it.
    Claimed {
        session: String,
        execution: String,
        turn: Option<i64>,
        confirmation: Option<String>,
        attempt: i64,
    },
    /// A call has run, and its end could not be recorded: it is as if this process had died in the middle.
    Unsettled { session: String, execution: String },
}

pub(super) struct Keeper {
    pub(super) pool: Arc<Pool>,
    pub(super) instance: String,
    pub(super) lease: Duration,
    /// For how long a lost statement may still be done.
    pub(super) aftermath: Duration,
    pub(super) loose: mpsc::UnboundedReceiver<Loose>,
    pub(super) closing: watch::Receiver<bool>,
    pub(super) writer: JoinHandle<()>,
}

impl Keeper {
    /// Works until the store is closed or dropped, and then ends the lease.
    pub(super) async fn keep(mut self) {
        let mut ends = Vec::new();
        let mut ticks = interval((self.lease / 3).max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.renew().await,
                Some(loose) = self.loose.recv() => ends.push((loose, Instant::now() + self.aftermath)),
                _ = self.closing.changed() => break,
            }
            self.tie_up(&mut ends).await;
        }
        // It records what has run, and may leave loose ends.
        _ = (&mut self.writer).await;
        while let Ok(loose) = self.loose.try_recv() {
            ends.push((loose, Instant::now()));
        }
        self.tie_up(&mut ends).await;
        if let Err(failure) = self.pool.query(END, &[&self.instance]).await {
            tracing::warn!(?failure, "the lease could not be ended, and runs out by itself");
        }
    }

    async fn renew(&self) {
        let parameters: Parameters<'_> = &[&self.instance, &milliseconds(self.lease)];
        if let Err(failure) = self.pool.query(RENEW, parameters).await {
            tracing::warn!(?failure, "the store's lease could not be renewed");
        }
    }

    async fn tie_up(&self, ends: &mut Vec<(Loose, Instant)>) {
        let mut kept = Vec::new();
        let mut is_reachable = true;
        for (loose, until) in ends.drain(..) {
            // One failure is enough to know: the lease must not wait for all of them.
            let tied = if is_reachable { self.tie(&loose).await } else { Ok(false) };
            is_reachable &= tied.is_ok();
            let is_over = is_reachable && Instant::now() >= until;
            if !(tied.unwrap_or(false) || is_over) {
                kept.push((loose, until));
            }
        }
        *ends = kept;
    }

    /// False if there was nothing to be done, but may be later.
    async fn tie(&self, loose: &Loose) -> Result<bool, Failure> {
        match loose {
            Loose::Claimed { session, execution, turn, confirmation, attempt } => {
                let parameters: Parameters<'_> =
                    &[session, execution, turn, confirmation, &self.instance, attempt];
                let rows = self.pool.query(UNCLAIM, parameters).await?;
                Ok(rows.first().is_some_and(|row| get(row, "done").unwrap_or(false)))
            }
            Loose::Unsettled { session, execution } => {
                self.pool.query(GIVE_UP, &[session, execution, &self.instance]).await?;
                Ok(true)
            }
        }
    }
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
