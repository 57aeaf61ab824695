//! Tests of the PostgreSQL back end only: connections, several processes, outages, statistics.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};
use toolwright_kb::record::{Record, RecordKey};
use toolwright_kb::store::postgres::Options;
use toolwright_kb::store::{Candidate, CandidateQuery, EmbedderId, Error, Filter, Postgres};

use crate::support::{EmbeddedFixture, Store, StoreFixture, put, record};

/// A separate schema on the shared test server.
pub struct PostgresFixture {
    pub url: String,
    pub schema: String,
}

impl PostgresFixture {
    fn on_test_server() -> Self {
        let url = std::env::var("TOOLWRIGHT_TEST_PGVECTOR").unwrap_or_else(|_| {
            panic!(
                "TOOLWRIGHT_TEST_PGVECTOR is not set: run ./scripts/test, or start a server with \
                 `scripts/postgres start --vector` and set it to the URL that it prints"
            )
        });
        Self::with_url(url)
    }

    fn with_url(url: String) -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self { url, schema: format!("kb {random:016x}") }
    }

    pub fn options(&self) -> Options {
        Options { schema: self.schema.clone(), connections: 2, ..Options::default() }
    }

    /// A separate connection pool, as another process would have.
    fn connect(&self) -> Postgres {
        Postgres::new(&self.url, self.options()).unwrap()
    }

    /// A plain connection for the test, which lives as long as the runtime.
    fn client(&self, runtime: &Runtime) -> Client {
        runtime.block_on(async {
            let (client, driver) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
            tokio::spawn(driver);
            let path = "SELECT set_config('search_path', quote_ident($1) || ', public', false)";
            client.query(path, &[&self.schema]).await.unwrap();
            client
        })
    }
}

impl StoreFixture for PostgresFixture {
    fn new() -> Self {
        Self::on_test_server()
    }

    fn open(&self) -> Store {
        Box::new(self.connect())
    }
}

fn keyword_candidates(store: &Store, text: &str) -> Result<Vec<Candidate>, Error> {
    let filter = Filter::default();
    store
        .find_candidates(&CandidateQuery { text, vector: None, filter: &filter, limit: 50, deadline: None })
        .map(|found| found.keyword)
}

/// Records whose texts share a small vocabulary.
fn random_records(count: usize) -> Vec<Record> {
    const WORDS: [&str; 12] = [
        "harbour", "lantern", "orchard", "granite", "meadow", "timber", "copper", "willow", "beacon",
        "saddle", "thunder", "velvet",
    ];
    let mut state = 7_u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut text = |length: usize| {
        let words: Vec<&str> = (0..length).map(|_| WORDS[next(12).min(next(12))]).collect();
        words.join(" ")
    };
    (0..count).map(|number| record(&format!("doc:{number}"), &text(3), &text(5 + number % 40))).collect()
}

#[test]
fn bm25_statistics_follow_edits_and_removals() {
    let records = random_records(600);
    let edited = PostgresFixture::on_test_server().open();
    // Every record is put three times with other texts, and a third of them is removed.
    for round in 0..3 {
        let old: Vec<Record> = records
            .iter()
            .map(|latest| record(&latest.id, "velvet harbour", &format!("copper {round}")))
            .collect();
        put(&edited, &old);
    }
    put(&edited, &records);
    let (removed, kept): (Vec<_>, Vec<_>) =
        records.iter().cloned().enumerate().partition(|(number, _)| number % 3 == 0);
    let kept: Vec<Record> = kept.into_iter().map(|(_, record)| record).collect();
    let mut writer = edited.begin_write().unwrap();
    removed.iter().for_each(|(_, record)| writer.remove(record.key()).unwrap());
    writer.commit().unwrap();
    drop(writer);

    let fresh = PostgresFixture::on_test_server().open();
    put(&fresh, &kept);
    for query in ["copper", "velvet harbour", "thunder saddle saddle", "granite orchard lantern willow"] {
        let (edited, fresh) =
            (keyword_candidates(&edited, query).unwrap(), keyword_candidates(&fresh, query).unwrap());
        assert_eq!(edited, fresh, "{query}");
        assert_eq!(edited.len(), 50, "{query}");
    }
    edited.rebuild().unwrap();
    assert_eq!(
        keyword_candidates(&edited, "copper saddle").unwrap(),
        keyword_candidates(&fresh, "copper saddle").unwrap()
    );
    assert_eq!(edited.stats().unwrap().records, 400);
}

#[test]
fn keyword_scores_equal_those_of_the_embedded_store() {
    let (database, directory) = (PostgresFixture::on_test_server(), EmbeddedFixture::new());
    let (first, second) = (database.open(), directory.open());
    let mut records = random_records(700);
    for (number, record) in records.iter_mut().enumerate().step_by(3) {
        record.tags = vec![["velvet", "two lanterns", "meadows"][number % 3].to_owned()];
    }
    put(&first, &records);
    put(&second, &records);
    for query in ["copper", "velvet harbour", "thunder saddle saddle", "a meadow of granite lanterns"] {
        let (first, second) =
            (keyword_candidates(&first, query).unwrap(), keyword_candidates(&second, query).unwrap());
        assert_eq!(first.len(), 50, "{query}");
        for (first, second) in first.iter().zip(&second) {
            // The order of summation differs.
            assert!((first.score - second.score).abs() < 1e-4, "{query}: {first:?} {second:?}");
        }
    }
}

#[test]
fn a_block_of_postings_is_compacted_once_half_of_it_is_deleted() {
    let (runtime, database) = (Runtime::new().unwrap(), PostgresFixture::on_test_server());
    let store = database.open();
    let records: Vec<Record> =
        (0..100).map(|number| record(&format!("doc:{number}"), "a title", "a text")).collect();
    // 100 × 42 document numbers, of which the last 100 are live.
    for _ in 0..42 {
        put(&store, &records);
    }
    assert_eq!(keyword_candidates(&store, "title").unwrap().len(), 50);
    let client = database.client(&runtime);
    let length = "SELECT length(title) FROM posting WHERE word = 'titl'";
    let length: i32 = runtime.block_on(client.query_one(length, &[])).unwrap().get(0);
    assert!(length <= 4 * 200, "{length} bytes for 100 records");
}

#[test]
fn a_second_process_cannot_write_until_the_first_is_done_or_killed() {
    let (runtime, database) = (Runtime::new().unwrap(), PostgresFixture::on_test_server());
    let (first, second) = (database.open(), database.open());
    let mut writer = first.begin_write().unwrap();
    writer.put(&record("doc:a", "One", "never committed"), "test").unwrap();
    assert_eq!(second.begin_write().err(), Some(Error::Locked));
    assert_eq!(second.rebuild(), Err(Error::Locked));
    drop(writer);
    put(&second, &[record("doc:b", "Two", "committed")]);

    let mut writer = first.begin_write().unwrap();
    writer.set_source_digest("half", Some([1; 32])).unwrap();
    let client = database.client(&runtime);
    // Kills the connection that holds the write lock of this schema.
    let kill = "SELECT pg_terminate_backend(l.pid, 5000) FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.granted AND ((l.classid::bigint << 32) | l.objid::bigint)
            = hashtextextended('toolwright writer ' || current_schema(), 0)";
    assert_eq!(runtime.block_on(client.query(kill, &[])).unwrap().len(), 1);
    assert!(matches!(writer.commit(), Err(Error::Unreachable(_))));
    put(&second, &[record("doc:c", "Three", "after a death")]);
    drop(writer);
    assert_eq!(first.source_digests().unwrap().len(), 0);
    assert_eq!(first.stats().unwrap().records, 2);
}

#[test]
fn a_failed_step_is_never_committed() {
    let store = PostgresFixture::on_test_server().open();
    let mut writer = store.begin_write().unwrap();
    writer.put(&record("doc:a", "One", "text"), "test").unwrap();
    // PostgreSQL refuses NUL characters.
    writer.put(&record("doc:b", "Two", "a\0b"), "test\0").unwrap();
    assert!(matches!(writer.commit(), Err(Error::Unusable(_))));
    assert!(matches!(writer.commit(), Err(Error::Unusable(_))));
    drop(writer);
    assert_eq!(store.stats().unwrap().records, 0);
    put(&store, &[record("doc:a", "One", "text")]);
    assert_eq!(keyword_candidates(&store, "one").unwrap().len(), 1);
}

#[test]
fn a_search_times_out_at_its_deadline_and_the_next_one_succeeds() {
    let (runtime, database) = (Runtime::new().unwrap(), PostgresFixture::on_test_server());
    let store = database.open();
    put(&store, &[record("doc:a", "One", "text")]);
    let client = database.client(&runtime);
    runtime.block_on(client.batch_execute("BEGIN; LOCK TABLE posting IN ACCESS EXCLUSIVE MODE")).unwrap();
    let filter = Filter::default();
    let started = Instant::now();
    let deadline = Some(started + Duration::from_millis(150));
    let query = CandidateQuery { text: "one", vector: None, filter: &filter, limit: 5, deadline };
    assert_eq!(store.find_candidates(&query), Err(Error::Timeout));
    assert!(started.elapsed() < Duration::from_secs(5));
    runtime.block_on(client.batch_execute("ROLLBACK")).unwrap();
    assert_eq!(keyword_candidates(&store, "one").unwrap().len(), 1);
}

#[test]
fn a_second_embedder_is_refused_until_the_vectors_are_dropped() {
    let store = PostgresFixture::on_test_server().open();
    let record = record("doc:a", "One", "text");
    put(&store, std::slice::from_ref(&record));
    let key = toolwright_kb::passages::split_record(&record)[0].key;
    let filter = Filter::default();
    let vector_candidates = |vector: &[f32]| {
        store.find_candidates(&CandidateQuery {
            text: "",
            vector: Some(vector),
            filter: &filter,
            limit: 5,
            deadline: None,
        })
    };
    for dimensions in [3, 5, 2] {
        let embedder = EmbedderId { name: format!("embedder {dimensions}"), dimensions };
        let mut vector = vec![0.0; dimensions];
        vector[0] = 1.0;
        let mut writer = store.begin_write().unwrap();
        writer.put_vectors(&embedder, &[(key, vector.clone())]).unwrap();
        let other = EmbedderId { name: "other".to_owned(), dimensions };
        let refused = writer.put_vectors(&other, &[(key, vector.clone())]);
        assert_eq!(
            refused,
            Err(Error::EmbedderMismatch { stored: embedder.name.clone(), configured: "other".to_owned() })
        );
        let found = vector_candidates(&vector).unwrap().vector;
        assert_eq!(found, [Candidate { key: RecordKey::from_id("doc:a"), score: 1.0, passage: 0 }]);
        assert!(matches!(vector_candidates(&[1.0; 7]), Err(Error::EmbedderMismatch { .. })));
        writer.drop_vectors().unwrap();
        assert_eq!((store.embedder(), vector_candidates(&vector).unwrap().vector), (Ok(None), Vec::new()));
    }
}

#[test]
fn a_newer_schema_and_an_invalid_url_are_refused() {
    let (runtime, database) = (Runtime::new().unwrap(), PostgresFixture::on_test_server());
    database.open().stats().unwrap();
    let client = database.client(&runtime);
    runtime.block_on(client.batch_execute("INSERT INTO migration (version) VALUES (99)")).unwrap();
    let error = database.open().stats().unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains("update Toolwright"), "{error}");

    let error =
        Postgres::new("postgres://me:secret@host:port/db", database.options()).unwrap_err().to_string();
    assert!(error.contains("percent-encoded") && !error.contains("secret"), "{error}");
}

#[test]
fn a_server_without_pgvector_is_reported() {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("TOOLWRIGHT_TEST_POSTGRES is not set: run ./scripts/test, or set it to the URL of `scripts/postgres start`")
    });
    let error = PostgresFixture::with_url(url).open().stats().unwrap_err().to_string();
    assert!(error.contains("no pgvector: install it"), "{error}");
}

/// A separate server, stopped when it is dropped.
struct Server {
    dir: PathBuf,
    url: String,
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap().keep();
        let url = postgres_script(&["start", "--vector", dir.to_str().unwrap()]);
        Self { dir, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        postgres_script(&["stop", self.dir.to_str().unwrap()]);
    }
}

fn postgres_script(arguments: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(path).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_restart_is_survived_and_an_unreachable_server_reported() {
    let server = Server::start();
    let database = PostgresFixture::with_url(server.url.clone());
    let store = database.open();
    put(&store, &[record("doc:a", "One", "text")]);
    assert_eq!(keyword_candidates(&store, "one").unwrap().len(), 1);

    // After a restart, the pooled connections are broken.
    postgres_script(&["restart", server.dir.to_str().unwrap()]);
    let answer = keyword_candidates(&store, "one");
    assert!(matches!(&answer, Ok(_) | Err(Error::Unreachable(_))), "{answer:?}");
    assert_eq!(keyword_candidates(&store, "one").unwrap().len(), 1);

    let unreachable =
        PostgresFixture { url: "postgres://toolwright@127.0.0.1:1/none".to_owned(), schema: "kb".to_owned() };
    assert!(matches!(keyword_candidates(&unreachable.open(), "one"), Err(Error::Unreachable(_))));
    assert!(matches!(unreachable.open().begin_write().err(), Some(Error::Unreachable(_))));
}
