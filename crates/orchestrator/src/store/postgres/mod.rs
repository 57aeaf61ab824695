//! The store of several servers at once, in PostgreSQL.
//!
//! - **Claims** are decided by one function in the database (`migrations/`), in one round trip.
//! - **Owners** are instances with a lease, which a background task renews by the database's clock. Whose lease has run
//!   out, or who has ended it, owns nothing any more. It still may settle: the first settlement stands, whoever made it.
//! - **Committed** is `synchronous_commit = on`, relaxed is `off`.
//! - **The audit** is a chain of each instance, written in order by one task. If the server loses relaxed rows in a
//!   crash, the instance begins a new chain.
//! - **A lost connection** fails the calls of that moment; what they may have left in the database is undone as soon as
//!   it can be reached.
//!
//! A connection pooler between this and the server must keep sessions apart: settings and prepared statements belong to
//! connections.

mod backend;
mod keeper;
mod reader;
mod rows;
mod writer;

use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use toolwright_postgres::{Address, Connector, Failure, Pool, Settings, migrate};

use self::keeper::{Keeper, Loose, milliseconds};
pub use self::reader::ReadOnly;
use self::writer::{Job, Writer};
use super::{Error, Result};

/// What makes version n of the schema of version n - 1, from 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql")];

/// How many settlements may wait for the writer before callers wait for their place.
const QUEUE: usize = 1024;

/// How the store uses its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Everything is kept in this schema, which is made if it is missing.
    pub schema: String,
    /// Connections for calls; two more are the store's own.
    pub connections: usize,
    /// How long an instance that vanishes is taken for alive.
    pub lease: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a settlement waits for a server that is away: its call has run already.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "toolwright".to_owned(),
            connections: 16,
            lease: Duration::from_secs(15),
            statement_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(5),
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

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(failure.to_string())
    }
}

/// A store in PostgreSQL. Dropping it ends its lease in the background; [`Postgres::close`] waits for that.
pub struct Postgres {
    calls: Pool,
    instance: String,
    lease_ms: i64,
    attempts: AtomicI64,
    jobs: mpsc::Sender<Job>,
    loose: mpsc::UnboundedSender<Loose>,
    closing: watch::Sender<bool>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Postgres").field("instance", &self.instance).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Opens the store: brings the schema up to date, and takes a lease.
    pub async fn connect(url: &str, options: Options) -> Result<Self> {
        let address = Address::parse(url)?;
        let connector = Arc::new(Connector::new(address, options.settings()));
        let mut connection = connector.open().await?;
        migrate(&mut connection, &options.schema, MIGRATIONS).await?;
        let instance = new_instance()?;
        let lease_ms = milliseconds(options.lease);
        connection.query(backend::FLUSH, &[&instance, &lease_ms]).await?;

        let (closing, closed) = watch::channel(false);
        let (loose, loose_ends) = mpsc::unbounded_channel();
        let (jobs, queue) = mpsc::channel(QUEUE);
        let own = || Arc::new(Pool::new(Arc::clone(&connector), 1));
        let writer = Writer::new(own(), instance.clone(), loose.clone(), options.patience);
        let keeper = Keeper {
            pool: own(),
            instance: instance.clone(),
            lease: options.lease,
            aftermath: options.statement_timeout * 2,
            loose: loose_ends,
            closing: closed.clone(),
            writer: tokio::spawn(writer.run(queue, closed)),
        };
        Ok(Self {
            calls: Pool::new(connector, options.connections),
            instance,
            lease_ms,
            attempts: AtomicI64::new(0),
            jobs,
            loose,
            closing,
            keeper: Mutex::new(Some(tokio::spawn(keeper.keep()))),
        })
    }

    /// Opens the store to look at it: an older or newer schema is refused and nothing is changed.
    pub async fn read_only(url: &str, options: Options) -> Result<ReadOnly> {
        ReadOnly::connect(url, options).await
    }

    /// The name of this instance: of its lease, and of its chain in the audit.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Records what waits and ends the lease, so that others need not wait for it to run out. Later calls fail.
    pub async fn close(&self) {
        self.calls.close();
        self.closing.send_replace(true);
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            // It ends by itself; a panic in it has been reported already.
            _ = keeper.await;
        }
    }
}

fn new_instance() -> Result<String> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| Error::Unavailable(error.to_string()))?;
    Ok(toolwright_registry::hex(&id))
}
