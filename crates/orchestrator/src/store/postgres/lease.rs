//! The lease of this process: how it is renewed, and what happens when it has expired. Each time it expires, the
//! process begins the next epoch, whose claims are separate from those before.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use toolwright_postgres::{Parameters, Pool};

use super::maintenance::milliseconds;
use super::postgres_rows::{get_only, synchronous_commit};
use super::statements;
use crate::store::Result;
use crate::store::records::Durability;

/// Counts on while the machine is suspended, as the lease does.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The lease of an instance.
#[derive(Debug)]
pub(super) struct Lease {
    instance: String,
    length: Duration,
    epoch: Mutex<Epoch>,
    /// Held while it is renewed.
    renewing: tokio::sync::Mutex<()>,
}

/// One epoch of an instance, which owns claims.
#[derive(Debug, Clone)]
pub(super) struct Epoch {
    /// From 1.
    pub(super) number: u64,
    /// Its name in the database.
    pub(super) owner: String,
    /// Until when its lease lasts at least, by [`CLOCK`].
    valid_until: Duration,
}

impl Lease {
    /// Takes the lease of a new instance.
    pub(super) async fn take(instance: String, length: Duration, pool: &Pool) -> Result<Self> {
        let epoch = Epoch { number: 0, owner: String::new(), valid_until: Duration::ZERO };
        let lease =
            Self { instance, length, epoch: Mutex::new(epoch), renewing: tokio::sync::Mutex::default() };
        lease.begin_epoch(pool).await?;
        Ok(lease)
    }

    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    pub(super) const fn length(&self) -> Duration {
        self.length
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.lock().clone()
    }

    /// Whether the lease of this epoch surely lasts.
    pub(super) fn is_fresh(&self, epoch: u64) -> bool {
        let current = self.lock();
        current.number == epoch && boot_time() < current.valid_until
    }

    /// Whether the lease of this epoch lasts. Asks the database only if this process was paused for so long that it
    /// does not know.
    pub(super) async fn holds(&self, epoch: u64, pool: &Pool) -> bool {
        if self.is_fresh(epoch) {
            return true;
        }
        if self.lock().number == epoch
            && let Err(error) = self.keep_unless_fresh(epoch, pool).await
        {
            tracing::warn!(%error, "could not renew the store's lease");
        }
        self.is_fresh(epoch)
    }

    /// Renews the lease, or begins the next epoch if it has expired.
    pub(super) async fn keep(&self, pool: &Pool, durability: Durability) -> Result<()> {
        let _renewing = self.renewing.lock().await;
        self.renew(pool, durability).await
    }

    async fn keep_unless_fresh(&self, epoch: u64, pool: &Pool) -> Result<()> {
        let _renewing = self.renewing.lock().await;
        if self.lock().number != epoch || self.is_fresh(epoch) {
            return Ok(());
        }
        self.renew(pool, Durability::Relaxed).await
    }

    async fn renew(&self, pool: &Pool, durability: Durability) -> Result<()> {
        let (owner, asked_at) = (self.epoch().owner, boot_time());
        let parameters: Parameters<'_> =
            &[&owner, &milliseconds(self.length), &synchronous_commit(durability)];
        if get_only(&pool.query(statements::KEEP_LEASE, parameters).await?, "is_kept")? {
            self.lock().valid_until = asked_at + self.length;
            return Ok(());
        }
        tracing::warn!(
            instance = self.instance,
            "the lease has expired: what this process runs may have been taken over"
        );
        self.begin_epoch(pool).await
    }

    async fn begin_epoch(&self, pool: &Pool) -> Result<()> {
        let before = self.epoch();
        let number = before.number + 1;
        let owner = match number {
            1 => self.instance.clone(),
            _ => format!("{}:{number}", self.instance),
        };
        let asked_at = boot_time();
        let parameters: Parameters<'_> = &[&owner, &before.owner, &milliseconds(self.length)];
        pool.query(statements::BEGIN_EPOCH, parameters).await?;
        *self.lock() = Epoch { number, owner, valid_until: asked_at + self.length };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Epoch> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn boot_time() -> Duration {
    let time = clock_gettime(CLOCK);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
