//! The knowledge base of several servers at once, in PostgreSQL with pgvector 0.8 or newer.
//!
//! - **Words** are ranked by BM25 from our own lists (`postings.rs`), with the words and weights of the embedded store.
//! - **Vectors** are half-precision, with an HNSW index.
//! - **One writer**, by an advisory lock that belongs to its connection: if its process dies, the lock is free again.
//! - **A lost connection** fails the calls of that moment; the next ones open a new one. Nothing is opened before the
//!   first call, so that a database that is away keeps no server from starting.
//!
//! A connection pooler between this and the server must keep sessions apart: settings, prepared statements and the lock
//! belong to connections.

mod postings;
mod search;
mod vectors;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;
use tokio_postgres::Row as Line;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSql;
use toolwright_postgres::{Address, Borrowed, Connection, Connector, Failure, Pool, Settings, migrate};

use self::write::Writer;
use super::{Backend, Digest, Error, Found, Known, Maker, Result, Search, Stats, Write};
use crate::record::{Key, Namespace, Record};

/// What makes version n of the schema of version n - 1, from 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql")];

const EXTENSION: &str = "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS version,
    EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS is_available";
/// Two that make it at the same time get in each other's way otherwise.
const MAKE_EXTENSION: &str = "SELECT pg_advisory_lock(hashtextextended('toolwright extension', 0));
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
    SELECT pg_advisory_unlock(hashtextextended('toolwright extension', 0))";
const RECORDS: &str = "SELECT body FROM record WHERE key = ANY($1)";
const AFTER: &str = "SELECT id, body FROM record WHERE id > $1 ORDER BY id LIMIT 500";
const SOURCES: &str = "SELECT name, digest FROM source";
const OF_SOURCE: &str = "SELECT key, digest FROM record WHERE source = $1";
const MAKER: &str = "SELECT name, dimensions FROM maker";
const WITHOUT_VECTOR: &str = "SELECT DISTINCT record AS key FROM passage p
    WHERE NOT EXISTS (SELECT FROM vector v WHERE v.key = p.vector)";
const BY_SCOPE: &str = "SELECT split_part(scope, ':', 1) AS name, count(*) AS count FROM record GROUP BY 1";
const BY_TYPE: &str = "SELECT kind AS name, count(*) AS count FROM record GROUP BY 1";
const STATS: &str = "SELECT (SELECT records FROM total) AS records, (SELECT count(*) FROM source) AS sources,
    (SELECT count(*) FROM passage) AS passages,
    (SELECT count(*) FROM passage p JOIN vector v ON v.key = p.vector) AS with_vector,
    (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
     WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r') AS bytes";

/// How the store uses its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Everything is kept in this schema, which is made if it is missing.
    pub schema: String,
    /// Connections for readers; a writer has two of its own.
    pub connections: usize,
    /// How long a call of a reader may take that gives no deadline.
    pub call_timeout: Duration,
    /// How long one statement of a writer may take.
    pub write_timeout: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "toolwright_kb".to_owned(),
            connections: 8,
            call_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// A knowledge base in PostgreSQL.
pub struct Postgres {
    options: Options,
    connector: Arc<Connector>,
    readers: Pool,
    writers: Pool,
    is_ready: OnceCell<()>,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Postgres").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Waiting for its thread is not allowed everywhere, and nothing is left to be done in it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Postgres {
    /// Reads the address; the database is reached with the first call.
    pub fn new(url: &str, options: Options) -> Result<Self> {
        let address = Address::parse(url).map_err(|failure| Error::Unusable(failure.to_string()))?;
        let settings = |statement_timeout| Settings {
            schema: options.schema.clone(),
            extension: Some("vector"),
            statement_timeout,
            connect_timeout: options.connect_timeout,
        };
        let connector = Arc::new(Connector::new(address.clone(), settings(options.call_timeout)));
        let writing = Arc::new(Connector::new(address, settings(options.write_timeout)));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("toolwright-kb")
            .enable_all()
            .build()
            .map_err(|error| Error::Unusable(error.to_string()))?;
        Ok(Self {
            readers: Pool::new(Arc::clone(&connector), options.connections),
            writers: Pool::new(writing, 4),
            connector,
            options,
            is_ready: OnceCell::new(),
            runtime: Some(runtime),
        })
    }

    /// Waits for something, at the longest until the deadline or for the time of a call.
    fn wait<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = std::result::Result<T, Trouble>>,
    ) -> Result<T> {
        let latest = deadline.unwrap_or_else(|| Instant::now() + self.options.call_timeout);
        self.block_on(async {
            tokio::time::timeout_at(latest.into(), work).await.unwrap_or(Err(Error::Timeout.into()))
        })
    }

    fn block_on<T>(&self, work: impl Future<Output = std::result::Result<T, Trouble>>) -> Result<T> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work).map_err(|trouble| trouble.0),
            None => Err(Error::Unreachable("it is closed".to_owned())),
        }
    }

    /// A reader's connection to a schema of this version.
    async fn reader(&self) -> std::result::Result<Borrowed<'_>, Trouble> {
        self.make_ready().await?;
        Ok(self.readers.borrow().await?)
    }

    async fn make_ready(&self) -> std::result::Result<(), Trouble> {
        let make = async || {
            make_extension(&self.connector).await?;
            // Opened after the extension is there: its schema belongs to the connection's path.
            let mut connection = self.connector.open().await?;
            migrate(&mut connection, &self.options.schema, MIGRATIONS).await?;
            Ok::<_, Trouble>(())
        };
        self.is_ready.get_or_try_init(make).await?;
        Ok(())
    }

    fn rows(&self, sql: &'static str, parameters: toolwright_postgres::Parameters<'_>) -> Result<Vec<Line>> {
        self.wait(None, async { Ok(self.reader().await?.query(sql, parameters).await?) })
    }
}

async fn make_extension(connector: &Connector) -> std::result::Result<(), Trouble> {
    let mut connection = connector.open().await?;
    let rows = connection.query(EXTENSION, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    match get::<Option<&str>>(row, "version")? {
        Some(version) if is_new_enough(version) => Ok(()),
        Some(version) => Err(Trouble(Error::Unusable(format!(
            "the database has pgvector {version}, but 0.8 is needed: install a newer one, then run \
             ALTER EXTENSION vector UPDATE"
        )))),
        None if !get::<bool>(row, "is_available")? => Err(Trouble(Error::Unusable(
            "the database server has no pgvector: install it there (Debian: apt-get install postgresql-16-pgvector; \
             otherwise https://github.com/pgvector/pgvector)"
                .to_owned(),
        ))),
        None => connection.run(MAKE_EXTENSION).await.map_err(|failure| {
            Trouble(Error::Unusable(format!(
                "the extension pgvector cannot be set up: {failure}. Run as the database's superuser: \
                 CREATE EXTENSION vector"
            )))
        }),
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(0), Some(8))
}

impl Backend for Postgres {
    fn search(&self, search: &Search<'_>) -> Result<Found> {
        let now = Instant::now();
        let deadline = search.deadline.unwrap_or(now + self.options.call_timeout);
        let left = deadline.saturating_duration_since(now).as_millis().max(1);
        // The index is asked for a few more than are needed, and goes on from there as long as filters turn them away.
        let nearest = (search.limit * 2).clamp(100, 1000);
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {left};
             SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL hnsw.ef_search = {nearest};
             SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = 2147483647"
        );
        self.wait(Some(deadline), async {
            let mut reader = self.reader().await?;
            reader
                .session(async |connection| {
                    connection.run(&begin).await?;
                    let found = search::search(connection, search).await?;
                    connection.run("COMMIT").await?;
                    Ok(found)
                })
                .await
        })
    }

    fn fetch(&self, keys: &[Key]) -> Result<Vec<Record>> {
        let keys: Vec<i64> = keys.iter().map(|key| key.0 as i64).collect();
        self.rows(RECORDS, &[&keys])?.iter().map(record).collect()
    }

    fn each(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let mut last = String::new();
        loop {
            let rows = self.rows(AFTER, &[&last])?;
            let Some(row) = rows.last() else { return Ok(()) };
            last = get(row, "id").map_err(|trouble| trouble.0)?;
            rows.iter().try_for_each(|row| visit(record(row)?))?;
        }
    }

    fn stats(&self) -> Result<Stats> {
        self.wait(None, async {
            let mut reader = self.reader().await?;
            let count = |row: &Line, name: &str| Ok::<_, Trouble>(get::<i64>(row, name)?.max(0) as u64);
            let mut named = async |sql| {
                let rows = reader.query(sql, &[]).await?;
                rows.iter().map(|row| Ok((get(row, "name")?, count(row, "count")?))).collect()
            };
            let by_namespace: std::result::Result<BTreeMap<String, u64>, Trouble> = named(BY_SCOPE).await;
            let by_type: std::result::Result<BTreeMap<String, u64>, Trouble> = named(BY_TYPE).await;
            let mut stats = Stats { by_namespace: by_namespace?, by_type: by_type?, ..Stats::default() };
            stats.embedder = reader.session(async |connection| maker(connection).await).await?;
            if let Some(row) = reader.query(STATS, &[]).await?.first() {
                stats.records = count(row, "records")?;
                stats.sources = count(row, "sources")?;
                stats.passages = count(row, "passages")?;
                stats.with_vector = count(row, "with_vector")?;
                stats.bytes = count(row, "bytes")?;
            }
            Ok(stats)
        })
    }

    fn sources(&self) -> Result<BTreeMap<String, Digest>> {
        let entry = |row: &Line| {
            let digest = get::<&[u8]>(row, "digest")?.try_into();
            Ok((
                get(row, "name")?,
                digest.map_err(|_| Error::Damaged("a digest has another length".to_owned()))?,
            ))
        };
        self.rows(SOURCES, &[])?.iter().map(|row| entry(row).map_err(|trouble: Trouble| trouble.0)).collect()
    }

    fn of_source(&self, source: &str) -> Result<Vec<Known>> {
        let rows = self.rows(OF_SOURCE, &[&source])?;
        let known = |row: &Line| {
            Ok::<_, Trouble>(Known { key: key(row)?, digest: get::<i64>(row, "digest")? as u64 })
        };
        rows.iter().map(|row| known(row).map_err(|trouble| trouble.0)).collect()
    }

    fn maker(&self) -> Result<Option<Maker>> {
        self.wait(None, async {
            self.reader().await?.session(async |connection| maker(connection).await).await
        })
    }

    fn without_vector(&self) -> Result<Vec<Key>> {
        let rows = self.rows(WITHOUT_VECTOR, &[])?;
        rows.iter().map(|row| key(row).map_err(|trouble| trouble.0)).collect()
    }

    fn write(&self) -> Result<Box<dyn Write + '_>> {
        Ok(Box::new(Writer::begin(self)?))
    }

    fn rebuild(&self) -> Result<()> {
        Writer::begin(self)?.rebuild()
    }
}

/// What went wrong, on its way out.
#[derive(Debug)]
struct Trouble(Error);

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self(match failure {
            Failure::Refused { state, .. } if state == SqlState::QUERY_CANCELED => Error::Timeout,
            Failure::Refused { text, .. } => Error::Unusable(text),
            Failure::Unsent(text) | Failure::Lost(text) => Error::Unreachable(text),
        })
    }
}

/// A column of a row.
fn get<'a, T: FromSql<'a>>(row: &'a Line, column: &str) -> std::result::Result<T, Trouble> {
    row.try_get(column).map_err(|error| Trouble(Error::Damaged(error.to_string())))
}

fn key(row: &Line) -> std::result::Result<Key, Trouble> {
    Ok(Key(get::<i64>(row, "key")? as u64))
}

fn record(row: &Line) -> Result<Record> {
    let body: &str = get(row, "body").map_err(|trouble| trouble.0)?;
    serde_json::from_str(body).map_err(|error| Error::Damaged(error.to_string()))
}

/// What made the vectors.
async fn maker(connection: &mut Connection) -> std::result::Result<Option<Maker>, Trouble> {
    let rows = connection.query(MAKER, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let dimensions = get::<i32>(row, "dimensions")?;
    Ok(Some(Maker { name: get(row, "name")?, dimensions: usize::try_from(dimensions).unwrap_or(0) }))
}

/// Who may read: an owner's records are apart from all others'.
fn scope(namespace: Namespace, owner: Option<&str>) -> String {
    match (namespace, owner) {
        (Namespace::Personal, Some(owner)) => format!("personal:{owner}"),
        // In `personal` no record has this: one always has an owner there.
        (namespace, _) => namespace.as_str().to_owned(),
    }
}
