//! Pools of connections. A connection is opened when it is needed, and replaced when it breaks.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, PoolError, RecyclingMethod, Runtime, TimeoutType};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls, Row};

use crate::{Address, Connection, Error, Parameters};

const SET_UP: &str = "SELECT set_config('search_path', quote_ident($1) || coalesce((
        SELECT ', ' || quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
        WHERE extname = $3), '') || ', pg_temp', false),
    set_config('statement_timeout', $2, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

/// The settings of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The schema of statements.
    pub schema: String,
    /// An extension whose types and operators statements use, in whichever schema it is installed.
    pub extension: Option<&'static str>,
    /// How long a statement may take, and how long a caller waits for a free connection.
    pub statement_timeout: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
}

/// Connections that are shared by callers.
pub struct Pool {
    pool: deadpool_postgres::Pool,
    settings: Settings,
    /// [`Address::name`].
    name: String,
}

impl Pool {
    /// A pool of up to `size` connections. Nothing is opened yet.
    pub fn new(address: &Address, settings: &Settings, size: usize) -> Result<Self, Error> {
        let connector = Connector { address: address.clone(), settings: settings.clone() };
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(address.config.clone(), connector, recycling);
        let pool = deadpool_postgres::Pool::builder(manager)
            .max_size(size.max(1))
            .wait_timeout(Some(settings.statement_timeout))
            .create_timeout(Some(settings.connect_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::NotSent(error.to_string()))?;
        Ok(Self { pool, settings: settings.clone(), name: address.name() })
    }

    /// A free connection, or a new one.
    pub async fn get(&self) -> Result<Connection, Error> {
        let client = self.pool.get().await.map_err(|error| self.error(error))?;
        Ok(Connection::new(client, self.settings.statement_timeout + Duration::from_secs(2)))
    }

    /// Runs one statement.
    pub async fn query(&self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        self.get().await?.query(sql, parameters).await
    }

    /// Closes idle connections, and refuses callers from now on.
    pub fn close(&self) {
        self.pool.close();
    }

    fn error(&self, error: PoolError) -> Error {
        let Settings { statement_timeout, connect_timeout, .. } = self.settings;
        let size = self.pool.status().max_size;
        let text = match error {
            PoolError::Backend(error) => Error::from(error).to_string(),
            PoolError::Timeout(TimeoutType::Wait) => {
                format!("all {size} connections have been busy for {statement_timeout:?}")
            }
            PoolError::Timeout(_) => format!("could not open a connection within {connect_timeout:?}"),
            PoolError::Closed => "it is closed".to_owned(),
            error => error.to_string(),
        };
        Error::NotSent(format!("{}: {text}", self.name))
    }
}

/// Opens connections and sets them up.
struct Connector {
    address: Address,
    settings: Settings,
}

impl Connect for Connector {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>> + Send + '_>>
    {
        let config = config.clone();
        Box::pin(async move {
            // The task ends when the connection does. Errors are reported to the callers of statements.
            let (client, task) = match &self.address.tls {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    (client, tokio::spawn(async { _ = connection.await }))
                }
                Some(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    (client, tokio::spawn(async { _ = connection.await }))
                }
            };
            let Settings { schema, extension, statement_timeout, .. } = &self.settings;
            let milliseconds = statement_timeout.as_millis().to_string();
            client.query(SET_UP, &[schema, &milliseconds, extension]).await?;
            Ok((client, task))
        })
    }
}
