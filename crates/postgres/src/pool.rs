//! Connections: a few, opened when they are needed, replaced when they break. One caller uses a connection at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::{Address, Failure};

/// How often a statement is sent that others got in the way of.
const ATTEMPTS: usize = 3;

/// How many connections a pool opens at once: a server that has just come back must not be overrun.
const OPENING: usize = 2;

const SET_UP: &str = "SELECT set_config('search_path', quote_ident($1) || coalesce((
        SELECT ', ' || quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
        WHERE extname = $3), '') || ', pg_temp', false),
    set_config('statement_timeout', $2, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

/// How connections are set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The schema that statements mean.
    pub schema: String,
    /// An extension whose types and operators they use, wherever it was installed.
    pub extension: Option<&'static str>,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
}

/// Opens connections.
pub struct Connector {
    address: Address,
    settings: Settings,
    opened: AtomicU64,
}

/// A connection to the server, set up for the schema.
pub struct Connection {
    /// No other connection of this process has it.
    pub(crate) serial: u64,
    pub(crate) client: Client,
    driver: AbortHandle,
    prepared: HashMap<&'static str, Statement>,
    limit: Duration,
    is_spoiled: bool,
}

/// Connections that are shared.
pub struct Pool {
    connector: Arc<Connector>,
    permits: Semaphore,
    opening: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// A connection that goes back to its pool.
pub struct Borrowed<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    _permit: SemaphorePermit<'a>,
}

pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Connector {
    pub fn new(address: Address, settings: Settings) -> Self {
        Self { address, settings, opened: AtomicU64::new(0) }
    }

    pub async fn open(&self) -> Result<Connection, Failure> {
        let limit = self.settings.connect_timeout;
        timeout(limit, self.connect()).await.map_err(|_| unsent(Failure::late(limit)))?.map_err(unsent)
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let (client, driver) = match &self.address.tls {
            None => {
                let (client, driver) = self.address.config.connect(NoTls).await?;
                (client, tokio::spawn(driver).abort_handle())
            }
            Some(tls) => {
                let (client, driver) = self.address.config.connect(tls.clone()).await?;
                (client, tokio::spawn(driver).abort_handle())
            }
        };
        let statement_timeout = self.settings.statement_timeout;
        let milliseconds = statement_timeout.as_millis().to_string();
        let parameters: Parameters<'_> = &[&self.settings.schema, &milliseconds, &self.settings.extension];
        client.query(SET_UP, parameters).await?;
        Ok(Connection {
            serial: self.opened.fetch_add(1, Ordering::Relaxed),
            client,
            driver,
            prepared: HashMap::new(),
            // The server's own limit comes first, unless it is not there any more.
            limit: statement_timeout + Duration::from_secs(2),
            is_spoiled: false,
        })
    }
}

fn closed() -> Failure {
    Failure::Unsent("it is closed".to_owned())
}

/// What happens to a connection before it is there is no statement's doing.
fn unsent(failure: Failure) -> Failure {
    match failure {
        Failure::Unsent(text) | Failure::Refused { text, .. } | Failure::Lost(text) => Failure::Unsent(text),
    }
}

impl Connection {
    /// Runs a statement, which is a transaction of its own. Its text is never made from values.
    pub async fn query(
        &mut self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let mut attempt = 1;
        loop {
            match self.send(sql, parameters).await {
                Err(failure) if failure.is_passing() && attempt < ATTEMPTS => attempt += 1,
                Err(failure) => {
                    self.is_spoiled |= failure.spoils_connection();
                    return Err(failure);
                }
                Ok(rows) => return Ok(rows),
            }
        }
    }

    async fn send(&mut self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
        let limit = self.limit;
        let sending = async {
            let statement = match self.prepared.get(sql) {
                Some(statement) => statement,
                None => {
                    let prepared = self.client.prepare(sql).await.map_err(|error| unsent(error.into()))?;
                    self.prepared.entry(sql).or_insert(prepared)
                }
            };
            Ok(self.client.query(statement, parameters).await?)
        };
        timeout(limit, sending).await.unwrap_or_else(|_| Err(Failure::late(limit)))
    }

    /// Runs statements that give nothing back. They are never made from text that came from outside.
    pub async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        let limit = self.limit;
        let answer = timeout(limit, self.client.batch_execute(sql)).await;
        let answer =
            answer.map_or_else(|_| Err(Failure::late(limit)), |answer| answer.map_err(Failure::from));
        self.is_spoiled |= answer.as_ref().is_err_and(Failure::spoils_connection);
        answer
    }

    fn is_usable(&self) -> bool {
        !self.is_spoiled && !self.client.is_closed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A driver ends by itself once its client is gone, unless the server does not answer.
        if self.is_spoiled {
            self.driver.abort();
        }
    }
}

impl Pool {
    pub fn new(connector: Arc<Connector>, size: usize) -> Self {
        Self {
            connector,
            permits: Semaphore::new(size.max(1)),
            opening: Semaphore::new(OPENING),
            idle: Mutex::default(),
        }
    }

    /// A connection that is open as far as anybody knows.
    pub async fn borrow(&self) -> Result<Borrowed<'_>, Failure> {
        let limit = self.connector.settings.statement_timeout;
        let permit = timeout(limit, self.permits.acquire())
            .await
            .map_err(|_| Failure::Unsent(format!("all connections are busy for {limit:?}")))?
            .map_err(|_| closed())?;
        let connection = match self.take() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        Ok(Borrowed { pool: self, connection: Some(connection), _permit: permit })
    }

    async fn open(&self) -> Result<Connection, Failure> {
        let _turn = self.opening.acquire().await.map_err(|_| closed())?;
        // Somebody may have given one back in the meantime.
        match self.take() {
            Some(connection) => Ok(connection),
            None => self.connector.open().await,
        }
    }

    /// Runs one statement.
    pub async fn query(&self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
        self.borrow().await?.query(sql, parameters).await
    }

    /// No more connections are given out.
    pub fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(Connection::is_usable)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Borrowed<'_> {
    pub async fn query(
        &mut self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        match &mut self.connection {
            Some(connection) => connection.query(sql, parameters).await,
            None => Err(Failure::Unsent("the connection is gone".to_owned())),
        }
    }

    /// Runs several statements that belong together, such as a transaction. If they fail, or nobody waits for them any
    /// more, the connection is in no known state and is not used again.
    pub async fn session<T, E: From<Failure>>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(connection) = &mut self.connection else {
            return Err(Failure::Unsent("the connection is gone".to_owned()).into());
        };
        let was_spoiled = std::mem::replace(&mut connection.is_spoiled, true);
        let answer = work(connection).await;
        connection.is_spoiled = was_spoiled || answer.is_err();
        answer
    }

    /// Which of the process's connections it is.
    pub fn serial(&self) -> Option<u64> {
        self.connection.as_ref().map(|connection| connection.serial)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let is_open = !self.pool.permits.is_closed();
        let usable = self.connection.take().filter(|connection| is_open && connection.is_usable());
        if let Some(connection) = usable {
            self.pool.idle().push(connection);
        }
    }
}
