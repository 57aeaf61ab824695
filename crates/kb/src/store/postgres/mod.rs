//! The knowledge base of several servers at once, in PostgreSQL with pgvector 0.8 or newer.
//!
//! - **Words** are ranked by BM25 from our own postings (`postings.rs`), with the tokenizer and weights of the embedded
//!   store.
//! - **Vectors** are half-precision, with an HNSW index.
//! - **One writer**, by an advisory lock that belongs to its connection: if its process dies, the lock is released.
//! - **A lost connection** fails the calls that use it; later calls open a new one. Nothing is opened before the
//!   first call, so that a server can start while its database is down.
//!
//! A connection pooler between this and the server must pool by session: settings, prepared statements and the lock
//! belong to connections.

mod postgres_search;
mod postgres_vectors;
mod postgres_writer;
mod postings;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSql;
use toolwright_postgres::{Address, Connection, Pool, Settings, migrate};

use self::postgres_writer::PostgresWriter;
use super::{
    Backend, CandidateLists, CandidateQuery, EmbedderId, Error, RecordDigest, Result, SourceDigest, Stats,
    StoreWriter,
};
use crate::record::{Record, RecordKey};

/// Migration n makes version n of the schema from version n - 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql")];

const EXTENSION: &str = "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS version,
    EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS is_available";
/// Two processes that create it at once would fail, so a lock is held until the implicit transaction is committed.
const CREATE_EXTENSION: &str = "SELECT pg_advisory_xact_lock(hashtextextended('toolwright extension', 0));
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public";
const RECORDS: &str = "SELECT body FROM record WHERE key = ANY($1)";
const RECORDS_AFTER: &str = "SELECT id, body FROM record WHERE id > $1 ORDER BY id LIMIT 500";
const SOURCES: &str = "SELECT name, digest FROM source";
const RECORDS_OF_SOURCE: &str = "SELECT key, digest FROM record WHERE source = $1";
const EMBEDDER: &str = "SELECT name, dimensions FROM maker";
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
    /// The schema of all tables. It is created if it is missing.
    pub schema: String,
    /// Connections for readers; a writer uses two more.
    pub connections: usize,
    /// How long a call of a reader may take if it has no deadline.
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
    readers: Pool,
    writers: Pool,
    is_ready: OnceCell<()>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Postgres").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which panics in async code.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Postgres {
    /// Parses the address; the first call connects.
    pub fn new(url: &str, options: Options) -> Result<Self> {
        let address = Address::parse(url).map_err(|error| Error::Unusable(error.to_string()))?;
        let settings = |statement_timeout| Settings {
            schema: options.schema.clone(),
            extension: Some("vector"),
            statement_timeout,
            connect_timeout: options.connect_timeout,
        };
        let pool = |settings, size| {
            Pool::new(&address, &settings, size).map_err(|error| Error::Unusable(error.to_string()))
        };
        let readers = pool(settings(options.call_timeout), options.connections)?;
        let writers = pool(settings(options.write_timeout), 4)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("toolwright-kb")
            .enable_all()
            .build()
            .map_err(|error| Error::Unusable(error.to_string()))?;
        Ok(Self { readers, writers, options, is_ready: OnceCell::new(), runtime: Some(runtime) })
    }

    /// Runs a future until its deadline, or for the time of a call.
    fn run_until<T>(&self, deadline: Option<Instant>, work: impl Future<Output = Result<T>>) -> Result<T> {
        let latest = deadline.unwrap_or_else(|| Instant::now() + self.options.call_timeout);
        self.block_on(async {
            tokio::time::timeout_at(latest.into(), work).await.unwrap_or(Err(Error::Timeout))
        })
    }

    fn block_on<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => Err(Error::Unreachable("it is closed".to_owned())),
        }
    }

    /// A connection for reading, to a schema of this version.
    async fn reader(&self) -> Result<Connection> {
        self.prepare_schema().await?;
        Ok(self.readers.get().await?)
    }

    async fn prepare_schema(&self) -> Result<()> {
        let prepare = async || {
            let mut connection = self.readers.get().await?;
            create_extension(&mut connection).await?;
            // The schema of the extension is in the search path of connections that are opened from now on.
            connection.close();
            let mut connection = self.readers.get().await?;
            migrate(&mut connection, &self.options.schema, MIGRATIONS).await?;
            Ok::<_, Error>(())
        };
        self.is_ready.get_or_try_init(prepare).await?;
        Ok(())
    }

    fn rows(&self, sql: &'static str, parameters: toolwright_postgres::Parameters<'_>) -> Result<Vec<Row>> {
        self.run_until(None, async { Ok(self.reader().await?.query(sql, parameters).await?) })
    }
}

async fn create_extension(connection: &mut Connection) -> Result<()> {
    let rows = connection.query(EXTENSION, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    match get::<Option<&str>>(row, "version")? {
        Some(version) if is_new_enough(version) => Ok(()),
        Some(version) => Err(Error::Unusable(format!(
            "the database has pgvector {version}, but 0.8 is needed: install a newer one, then run \
             ALTER EXTENSION vector UPDATE"
        ))),
        None if !get::<bool>(row, "is_available")? => Err(Error::Unusable(
            "the database server has no pgvector: install it there (Debian: apt-get install postgresql-16-pgvector; \
             otherwise https://github.com/pgvector/pgvector)"
                .to_owned(),
        )),
        None => connection.run(CREATE_EXTENSION).await.map_err(|error| {
            Error::Unusable(format!(
                "could not create the extension pgvector: {error}. Run as the database's superuser: \
                 CREATE EXTENSION vector"
            ))
        }),
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(0), Some(8))
}

impl Backend for Postgres {
    fn find_candidates(&self, query: &CandidateQuery<'_>) -> Result<CandidateLists> {
        let now = Instant::now();
        let deadline = query.deadline.unwrap_or(now + self.options.call_timeout);
        let left = deadline.saturating_duration_since(now).as_millis().max(1);
        // The index returns more than are needed, and continues from there while the filter excludes too many.
        let nearest = (query.limit * 2).clamp(100, 1000);
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {left};
             SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL hnsw.ef_search = {nearest};
             SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = 2147483647"
        );
        self.run_until(Some(deadline), async {
            let mut reader = self.reader().await?;
            reader
                .unit_of_work(async |connection| {
                    connection.run(&begin).await?;
                    let found = postgres_search::find_candidates(connection, query).await?;
                    connection.run("COMMIT").await?;
                    Ok(found)
                })
                .await
        })
    }

    fn fetch(&self, keys: &[RecordKey]) -> Result<Vec<Record>> {
        let keys: Vec<i64> = keys.iter().map(|key| key.0 as i64).collect();
        self.rows(RECORDS, &[&keys])?.iter().map(record).collect()
    }

    fn for_each_record(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let mut last = String::new();
        loop {
            let rows = self.rows(RECORDS_AFTER, &[&last])?;
            let Some(row) = rows.last() else { return Ok(()) };
            last = get(row, "id")?;
            rows.iter().try_for_each(|row| visit(record(row)?))?;
        }
    }

    fn stats(&self) -> Result<Stats> {
        self.run_until(None, async {
            let mut reader = self.reader().await?;
            let count = |row: &Row, name: &str| Ok::<_, Error>(get::<i64>(row, name)?.max(0) as u64);
            let mut named = async |sql| {
                let rows = reader.query(sql, &[]).await?;
                rows.iter().map(|row| Ok((get(row, "name")?, count(row, "count")?))).collect()
            };
            let by_namespace: Result<BTreeMap<String, u64>> = named(BY_SCOPE).await;
            let by_type: Result<BTreeMap<String, u64>> = named(BY_TYPE).await;
            let mut stats = Stats { by_namespace: by_namespace?, by_type: by_type?, ..Stats::default() };
            stats.embedder = reader.unit_of_work(stored_embedder).await?;
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

    fn source_digests(&self) -> Result<BTreeMap<String, SourceDigest>> {
        let entry = |row: &Row| {
            let digest = get::<&[u8]>(row, "digest")?.try_into();
            Ok((
                get(row, "name")?,
                digest.map_err(|_| Error::Corrupt("a source digest does not have 32 bytes".to_owned()))?,
            ))
        };
        self.rows(SOURCES, &[])?.iter().map(entry).collect()
    }

    fn records_of_source(&self, source: &str) -> Result<Vec<RecordDigest>> {
        let rows = self.rows(RECORDS_OF_SOURCE, &[&source])?;
        let digest =
            |row: &Row| Ok(RecordDigest { key: key(row)?, digest: get::<i64>(row, "digest")? as u64 });
        rows.iter().map(digest).collect()
    }

    fn embedder(&self) -> Result<Option<EmbedderId>> {
        self.run_until(None, async { self.reader().await?.unit_of_work(stored_embedder).await })
    }

    fn keys_without_vector(&self) -> Result<Vec<RecordKey>> {
        let rows = self.rows(WITHOUT_VECTOR, &[])?;
        rows.iter().map(key).collect()
    }

    fn begin_write(&self) -> Result<Box<dyn StoreWriter + '_>> {
        Ok(Box::new(PostgresWriter::begin(self)?))
    }

    fn rebuild(&self) -> Result<()> {
        PostgresWriter::begin(self)?.rebuild()
    }
}

impl From<toolwright_postgres::Error> for Error {
    fn from(error: toolwright_postgres::Error) -> Self {
        use toolwright_postgres::Error::{NoReply, NotSent, Rejected};
        match error {
            Rejected { state, .. } if state == SqlState::QUERY_CANCELED => Self::Timeout,
            Rejected { text, .. } => Self::Unusable(text),
            NotSent(text) | NoReply(text) => Self::Unreachable(text),
        }
    }
}

/// A column of a row.
fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| Error::Corrupt(error.to_string()))
}

fn key(row: &Row) -> Result<RecordKey> {
    Ok(RecordKey(get::<i64>(row, "key")? as u64))
}

fn record(row: &Row) -> Result<Record> {
    let body: &str = get(row, "body")?;
    serde_json::from_str(body).map_err(|error| Error::Corrupt(error.to_string()))
}

/// The embedder of the stored vectors.
async fn stored_embedder(connection: &mut Connection) -> Result<Option<EmbedderId>> {
    let rows = connection.query(EMBEDDER, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let dimensions = get::<i32>(row, "dimensions")?;
    Ok(Some(EmbedderId { name: get(row, "name")?, dimensions: usize::try_from(dimensions).unwrap_or(0) }))
}
