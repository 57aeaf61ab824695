//! The fixture of the PostgreSQL store: a schema for each test, and processes that can be killed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};
use toolwright_orchestrator::store::Postgres;
use toolwright_orchestrator::store::postgres::Options;

use crate::support::{Restart, StoreFixture};

/// The server that the tests share.
pub fn url() -> String {
    std::env::var("TOOLWRIGHT_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "TOOLWRIGHT_TEST_POSTGRES is not set: run ./scripts/test, or start a server with \
             `scripts/postgres start` and put the URL that it prints there"
        )
    })
}

/// A schema for one test.
pub struct Database {
    pub url: String,
    pub schema: String,
}

impl Database {
    pub fn new() -> Self {
        Self::with_url(url())
    }

    pub fn with_url(url: String) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { url, schema: format!("test {} {time} {count}", std::process::id()) }
    }

    pub fn options(&self) -> Options {
        // Long enough that no lease expires by chance on a busy machine.
        let lease = Duration::from_secs(60);
        Options { schema: self.schema.clone(), lease, connections: 6, ..Options::default() }
    }

    pub async fn open(&self) -> Process {
        Process::start(&self.url, self.options()).await
    }

    /// A connection for the test itself.
    pub async fn client(&self) -> Client {
        let (client, driver) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(driver);
        let path = "SELECT set_config('search_path', quote_ident($1), false)";
        client.query(path, &[&self.schema]).await.unwrap();
        client
    }

    /// Expires the lease of an instance.
    pub async fn expire_lease(&self, instance: &str) {
        let client = self.client().await;
        let sql = "UPDATE instance SET lease_until = '-infinity', lease = '0' WHERE id = $1";
        client.execute(sql, &[&instance]).await.unwrap();
    }
}

/// A server process: its background tasks end when it does.
pub struct Process {
    pub store: Arc<Postgres>,
    pub name: String,
    runtime: Option<Runtime>,
}

impl Process {
    pub async fn start(url: &str, options: Options) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let url = format!("{url}?application_name={name}");
        let store = runtime.spawn(async move { Postgres::connect(&url, options).await });
        Self { store: Arc::new(store.await.unwrap().unwrap()), name, runtime: Some(runtime) }
    }

    /// Kills it: nothing is flushed, no lease is ended. Returns its instance's name.
    pub async fn kill(self, database: &Database) -> String {
        let (instance, name) = (self.store.instance().to_owned(), self.name.clone());
        drop(self);
        let client = database.client().await;
        let connections = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = $1";
        let mut timeout = PollTimeout::default();
        while !holds(&client, connections, &[&name]).await {
            timeout.wait().await;
        }
        instance
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub async fn holds(client: &Client, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> bool {
    client.query_one(sql, parameters).await.unwrap().get(0)
}

/// Polls until a condition holds.
pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let mut timeout = PollTimeout::default();
    while !condition().await {
        timeout.wait().await;
    }
}

/// Limits how long a test polls.
pub struct PollTimeout(Instant);

impl Default for PollTimeout {
    fn default() -> Self {
        Self(Instant::now() + Duration::from_secs(60))
    }
}

impl PollTimeout {
    pub async fn wait(&mut self) {
        assert!(Instant::now() < self.0, "the condition did not hold within a minute");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A server for one test, which may restart it.
pub struct Server {
    pub url: String,
    directory: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = script(&["start", directory.path().to_str().unwrap()]);
        Self { url: url.trim().to_owned(), directory }
    }

    pub fn restart(&self) {
        script(&["restart", self.directory.path().to_str().unwrap()]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        script(&["stop", self.directory.path().to_str().unwrap()]);
    }
}

fn script(arguments: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = std::process::Command::new(path).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub struct PostgresStore {
    database: Database,
    process: Process,
}

impl StoreFixture for PostgresStore {
    type Store = Postgres;

    async fn fresh() -> Self {
        let database = Database::new();
        let process = database.open().await;
        Self { database, process }
    }

    fn store(&self) -> Arc<Postgres> {
        Arc::clone(&self.process.store)
    }
}

impl Restart for PostgresStore {
    async fn restart(self) -> Self {
        let Self { database, process } = self;
        let instance = process.kill(&database).await;
        database.expire_lease(&instance).await;
        let process = database.open().await;
        Self { database, process }
    }
}
