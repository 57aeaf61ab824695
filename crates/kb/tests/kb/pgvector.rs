//! What only the back end in PostgreSQL does: connections, several processes, outages, statistics.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};
use toolwright_kb::record::{Key, Record};
use toolwright_kb::store::postgres::Options;
use toolwright_kb::store::{Backend, Candidate, Error, Filter, Maker, Postgres, Search, Store};

use crate::harness::{Harness, InDirectory, put, record};

/// A schema of its own on the server that the tests share.
pub struct Database {
    pub url: String,
    pub schema: String,
}

impl Database {
    pub fn new() -> Self {
        let url = std::env::var("TOOLWRIGHT_TEST_PGVECTOR").unwrap_or_else(|_| {
            panic!(
                "TOOLWRIGHT_TEST_PGVECTOR is not set: run ./scripts/test, or start a server with \
                 `scripts/postgres start --vector` and put the URL that it prints there"
            )
        });
        Self::at(url)
    }

    fn at(url: String) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { url, schema: format!("kb {} {time} {count}", std::process::id()) }
    }

    pub fn options(&self) -> Options {
        Options { schema: self.schema.clone(), connections: 2, ..Options::default() }
    }

    /// As a process of its own would have it.
    fn process(&self) -> Postgres {
        Postgres::new(&self.url, self.options()).unwrap()
    }

    /// A connection of the test's own, which lives as long as the runtime.
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

impl Harness for Database {
    fn fresh() -> Self {
        Self::new()
    }

    fn open(&self) -> Store {
        Store::Postgres(Box::new(self.process()))
    }
}

fn words(store: &Store, words: &str) -> Result<Vec<Candidate>, Error> {
    let filter = Filter::default();
    store
        .search(&Search { words, vector: None, filter: &filter, limit: 50, deadline: None })
        .map(|found| found.words)
}

/// Texts over few words, so that many have some in common.
fn many(count: usize) -> Vec<Record> {
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
fn statistics_are_those_of_what_is_there() {
    let records = many(600);
    let edited = Database::new().open();
    // Every record is put three times with other words, and a third of them is removed for good.
    for round in 0..3 {
        let old: Vec<Record> = records
            .iter()
            .map(|kept| record(&kept.id, "velvet harbour", &format!("copper {round}")))
            .collect();
        put(&edited, &old);
    }
    put(&edited, &records);
    let (removed, kept): (Vec<_>, Vec<_>) =
        records.iter().cloned().enumerate().partition(|(number, _)| number % 3 == 0);
    let kept: Vec<Record> = kept.into_iter().map(|(_, record)| record).collect();
    let mut writer = edited.write().unwrap();
    removed.iter().for_each(|(_, record)| writer.remove(record.key()).unwrap());
    writer.commit().unwrap();
    drop(writer);

    let fresh = Database::new().open();
    put(&fresh, &kept);
    for query in ["copper", "velvet harbour", "thunder saddle saddle", "granite orchard lantern willow"] {
        let (edited, fresh) = (words(&edited, query).unwrap(), words(&fresh, query).unwrap());
        assert_eq!(edited, fresh, "{query}");
        assert_eq!(edited.len(), 50, "{query}");
    }
    edited.rebuild().unwrap();
    assert_eq!(words(&edited, "copper saddle").unwrap(), words(&fresh, "copper saddle").unwrap());
    assert_eq!(edited.stats().unwrap().records, 400);
}

#[test]
fn words_count_as_in_the_embedded_store() {
    let (database, directory) = (Database::new(), InDirectory::fresh());
    let (here, there) = (database.open(), directory.open());
    let mut records = many(700);
    for (number, record) in records.iter_mut().enumerate().step_by(3) {
        record.tags = vec![["velvet", "two lanterns", "meadows"][number % 3].to_owned()];
    }
    put(&here, &records);
    put(&there, &records);
    for query in ["copper", "velvet harbour", "thunder saddle saddle", "a meadow of granite lanterns"] {
        let (here, there) = (words(&here, query).unwrap(), words(&there, query).unwrap());
        assert_eq!(here.len(), 50, "{query}");
        for (here, there) in here.iter().zip(&there) {
            // Sums of small numbers in another order.
            assert!((here.score - there.score).abs() < 1e-4, "{query}: {here:?} {there:?}");
        }
    }
}

#[test]
fn lists_are_swept_once_half_of_a_block_is_gone() {
    let (runtime, database) = (Runtime::new().unwrap(), Database::new());
    let store = database.open();
    let records: Vec<Record> =
        (0..100).map(|number| record(&format!("doc:{number}"), "a title", "a text")).collect();
    // 100 × 41 numbers, of which the last 100 are there.
    for _ in 0..42 {
        put(&store, &records);
    }
    assert_eq!(words(&store, "title").unwrap().len(), 50);
    let client = database.client(&runtime);
    let length = "SELECT length(title) FROM posting WHERE word = 'titl'";
    let length: i32 = runtime.block_on(client.query_one(length, &[])).unwrap().get(0);
    assert!(length <= 4 * 200, "{length} bytes for 100 records");
}

#[test]
fn a_second_process_cannot_write_until_the_first_is_done_or_dead() {
    let (runtime, database) = (Runtime::new().unwrap(), Database::new());
    let (here, there) = (database.open(), database.open());
    let mut writer = here.write().unwrap();
    writer.put(&record("doc:a", "One", "never committed"), "test").unwrap();
    assert_eq!(there.write().err(), Some(Error::Busy));
    assert_eq!(there.rebuild(), Err(Error::Busy));
    drop(writer);
    put(&there, &[record("doc:b", "Two", "committed")]);

    let mut writer = here.write().unwrap();
    writer.note_source("half", Some([1; 32])).unwrap();
    let client = database.client(&runtime);
    // All connections that hold a lock of this schema's writer: only this test's.
    let kill = "SELECT pg_terminate_backend(l.pid, 5000) FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.granted AND ((l.classid::bigint << 32) | l.objid::bigint)
            = hashtextextended('toolwright writer ' || current_schema(), 0)";
    assert_eq!(runtime.block_on(client.query(kill, &[])).unwrap().len(), 1);
    assert!(matches!(writer.commit(), Err(Error::Unreachable(_))));
    put(&there, &[record("doc:c", "Three", "after a death")]);
    drop(writer);
    assert_eq!(here.sources().unwrap().len(), 0);
    assert_eq!(here.stats().unwrap().records, 2);
}

#[test]
fn a_failed_step_is_never_committed() {
    let store = Database::new().open();
    let mut writer = store.write().unwrap();
    writer.put(&record("doc:a", "One", "text"), "test").unwrap();
    // PostgreSQL keeps no NUL.
    writer.put(&record("doc:b", "Two", "a\0b"), "test\0").unwrap();
    assert!(matches!(writer.commit(), Err(Error::Unusable(_))));
    assert!(matches!(writer.commit(), Err(Error::Unusable(_))));
    drop(writer);
    assert_eq!(store.stats().unwrap().records, 0);
    put(&store, &[record("doc:a", "One", "text")]);
    assert_eq!(words(&store, "one").unwrap().len(), 1);
}

#[test]
fn a_deadline_ends_a_search_and_the_next_one_is_answered() {
    let (runtime, database) = (Runtime::new().unwrap(), Database::new());
    let store = database.open();
    put(&store, &[record("doc:a", "One", "text")]);
    let client = database.client(&runtime);
    runtime.block_on(client.batch_execute("BEGIN; LOCK TABLE posting IN ACCESS EXCLUSIVE MODE")).unwrap();
    let filter = Filter::default();
    let begun = Instant::now();
    let deadline = Some(begun + Duration::from_millis(150));
    let search = Search { words: "one", vector: None, filter: &filter, limit: 5, deadline };
    assert_eq!(store.search(&search), Err(Error::Timeout));
    assert!(begun.elapsed() < Duration::from_secs(5));
    runtime.block_on(client.batch_execute("ROLLBACK")).unwrap();
    assert_eq!(words(&store, "one").unwrap().len(), 1);
}

#[test]
fn another_embedder_needs_the_vectors_dropped() {
    let store = Database::new().open();
    let record = record("doc:a", "One", "text");
    put(&store, std::slice::from_ref(&record));
    let key = toolwright_kb::passages::of(&record)[0].key;
    let filter = Filter::default();
    let nearest = |vector: &[f32]| {
        store.search(&Search { words: "", vector: Some(vector), filter: &filter, limit: 5, deadline: None })
    };
    for dimensions in [3, 5, 2] {
        let maker = Maker { name: format!("maker {dimensions}"), dimensions };
        let mut vector = vec![0.0; dimensions];
        vector[0] = 1.0;
        let mut writer = store.write().unwrap();
        writer.put_vectors(&maker, &[(key, vector.clone())]).unwrap();
        let other = Maker { name: "other".to_owned(), dimensions };
        let refused = writer.put_vectors(&other, &[(key, vector.clone())]);
        assert_eq!(
            refused,
            Err(Error::OtherEmbedder { kept: maker.name.clone(), asked: "other".to_owned() })
        );
        let found = nearest(&vector).unwrap().vectors;
        assert_eq!(found, [Candidate { key: Key::of("doc:a"), score: 1.0, passage: 0 }]);
        assert!(matches!(nearest(&[1.0; 7]), Err(Error::OtherEmbedder { .. })));
        writer.drop_vectors().unwrap();
        assert_eq!((store.maker(), nearest(&vector).unwrap().vectors), (Ok(None), Vec::new()));
    }
}

#[test]
fn a_newer_schema_and_a_bad_address_are_refused() {
    let (runtime, database) = (Runtime::new().unwrap(), Database::new());
    database.open().stats().unwrap();
    let client = database.client(&runtime);
    runtime.block_on(client.batch_execute("INSERT INTO migration (version) VALUES (99)")).unwrap();
    let error = database.open().stats().unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains("update it"), "{error}");

    let error =
        Postgres::new("postgres://me:secret@host:port/db", database.options()).unwrap_err().to_string();
    assert!(error.contains("percent-encoded") && !error.contains("secret"), "{error}");
}

#[test]
fn a_server_without_pgvector_is_told() {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("TOOLWRIGHT_TEST_POSTGRES is not set: run ./scripts/test, or put the URL of `scripts/postgres start` there")
    });
    let error = Database::at(url).open().stats().unwrap_err().to_string();
    assert!(error.contains("no pgvector: install it"), "{error}");
}

/// A server of the test's own, which is stopped with it.
struct Server {
    dir: PathBuf,
    url: String,
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap().keep();
        let url = script(&["start", "--vector", dir.to_str().unwrap()]);
        Self { dir, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        script(&["stop", self.dir.to_str().unwrap()]);
    }
}

fn script(arguments: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(path).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_that_goes_away_and_comes_back_is_noticed() {
    let server = Server::start();
    let database = Database::at(server.url.clone());
    let store = database.open();
    put(&store, &[record("doc:a", "One", "text")]);
    assert_eq!(words(&store, "one").unwrap().len(), 1);

    // Restarted: connections are dead without knowing.
    script(&["restart", server.dir.to_str().unwrap()]);
    let answer = words(&store, "one");
    assert!(matches!(&answer, Ok(_) | Err(Error::Unreachable(_))), "{answer:?}");
    assert_eq!(words(&store, "one").unwrap().len(), 1);

    let away = Database { url: "postgres://toolwright@127.0.0.1:1/none".to_owned(), schema: "kb".to_owned() };
    assert!(matches!(words(&away.open(), "one"), Err(Error::Unreachable(_))));
    assert!(matches!(away.open().write().err(), Some(Error::Unreachable(_))));
}
