//! The store of several servers at once, in PostgreSQL.
//!
//! - **Claims** are decided by a function in the database (`migrations/`), in one round trip.
//! - **Owners** are instances with a lease, which a background task renews by the database's clock. An instance whose
//!   lease has expired or ended owns nothing: it begins a new epoch. It may still settle what nobody has taken over.
//! - **Committed** is `synchronous_commit = on`, relaxed is `off`.
//! - **The audit** is one chain for each instance, written in order by one task. If the server loses relaxed rows in
//!   a crash, the instance starts a new chain. The first rows of a chain register it in the same transaction, so that
//!   the deletion of a whole chain is detected.
//! - **A lost connection** fails the calls that use it; what they may have left in the database is taken back as soon
//!   as the server is reachable.
//!
//! A connection pooler between this and the server must pool by session: settings and prepared statements belong to
//! connections.

mod conversation_logs;
mod lease;
mod maintenance;
mod postgres_audit;
mod postgres_backend;
mod postgres_rows;
mod postgres_tasks;
mod read_only;
mod settlement_writer;
mod statements;

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use toolwright_postgres::{Address, Pool, Settings, migrate};
use toolwright_registry::hex;

use self::lease::Lease;
use self::maintenance::{Cleanup, Maintenance};
pub use self::read_only::ReadOnly;
use self::settlement_writer::{SettlementWriter, WriteRequest};
use super::{Error, Result};
use crate::ids;

/// Migration n makes version n of the schema from version n - 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
];

/// How many settlements may wait for the writer before callers wait to add theirs.
const WRITE_QUEUE_LENGTH: usize = 1024;

/// How the store uses its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The schema of all tables. It is created if it is missing.
    pub schema: String,
    /// Connections for calls; the store uses two more in the background.
    pub connections: usize,
    /// How long the claims of an instance that has died stay its own.
    pub lease: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a settlement is retried while the server is unavailable: its call has run already.
    pub settle_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "toolwright".to_owned(),
            connections: 16,
            lease: Duration::from_secs(15),
            statement_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            settle_timeout: Duration::from_secs(5),
        }
    }
}

impl Options {
    fn settings(&self) -> Settings {
        Settings {
            schema: self.schema.clone(),
            extension: None,
            statement_timeout: self.statement_timeout,
            connect_timeout: self.connect_timeout,
        }
    }
}

impl From<toolwright_postgres::Error> for Error {
    fn from(error: toolwright_postgres::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// A store in PostgreSQL. Dropping it ends its lease in the background; [`Postgres::close`] waits for that.
#[derive(Debug)]
pub struct Postgres {
    pool: Pool,
    lease: Arc<Lease>,
    attempts: AtomicI64,
    writes: mpsc::Sender<WriteRequest>,
    cleanups: mpsc::UnboundedSender<Cleanup>,
    closing: watch::Sender<bool>,
    maintenance: Mutex<Option<JoinHandle<()>>>,
}

impl Postgres {
    /// Opens the store: migrates the schema, and takes a lease.
    pub async fn connect(url: &str, options: Options) -> Result<Self> {
        let (address, settings) = (Address::parse(url)?, options.settings());
        let pool = Pool::new(&address, &settings, options.connections)?;
        let mut connection = pool.get().await?;
        migrate(&mut connection, &options.schema, MIGRATIONS).await?;
        let instance = hex(&ids::random::<16>());
        drop(connection);
        let lease = Arc::new(Lease::take(instance.clone(), options.lease, &pool).await?);

        let (closing, closed) = watch::channel(false);
        let (cleanups, pending_cleanups) = mpsc::unbounded_channel();
        let (writes, requests) = mpsc::channel(WRITE_QUEUE_LENGTH);
        let own_pool = || Pool::new(&address, &settings, 1);
        let writer = SettlementWriter::new(own_pool()?, instance, cleanups.clone(), options.settle_timeout);
        let maintenance = Maintenance {
            pool: own_pool()?,
            lease: Arc::clone(&lease),
            max_statement_age: options.statement_timeout * 2,
            cleanups: pending_cleanups,
            closing: closed.clone(),
            writer: tokio::spawn(writer.run(requests, closed)),
        };
        let store = Self {
            pool,
            lease,
            attempts: AtomicI64::new(0),
            writes,
            cleanups,
            closing,
            maintenance: Mutex::new(Some(tokio::spawn(maintenance.run()))),
        };
        store.move_blocks().await?;
        Ok(store)
    }

    /// Opens the store for reading. An older or newer schema is refused, and nothing is changed.
    pub async fn read_only(url: &str, options: Options) -> Result<ReadOnly> {
        ReadOnly::connect(url, &options).await
    }

    /// The name of this instance: of its lease, and of its audit chain.
    pub fn instance(&self) -> &str {
        self.lease.instance()
    }

    /// The number of its lease: a claim of this epoch is its own while [`Self::holds_lease`] of it is true.
    pub fn lease(&self) -> u64 {
        self.lease.epoch().number
    }

    /// Whether the lease with this number has not expired.
    pub async fn holds_lease(&self, lease: u64) -> bool {
        self.lease.holds(lease, &self.pool).await
    }

    /// Records the queued settlements and ends the lease, so that other instances need not wait for it to expire. Later
    /// calls fail.
    pub async fn close(&self) {
        self.pool.close();
        self.closing.send_replace(true);
        let maintenance = self.maintenance.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(maintenance) = maintenance {
            // A panic in it has been reported already.
            _ = maintenance.await;
        }
    }
}
