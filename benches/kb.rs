//! The benchmark of the knowledge base: ingest, search latency at several sizes with and without a 1 % filter, recall
//! of vector search against an exact comparison, memory, and retrieval quality on public test sets.
//!
//!   cargo bench -p toolwright-kb                           speed at 10,000 and 100,000 records, quality if
//!   TOOLWRIGHT_CORPORA is set cargo bench -p toolwright-kb -- speed --large          1,000,000 too cargo bench -p
//!   toolwright-kb -- speed --postgres URL   in a database (`scripts/postgres start --vector` gives one)
//!   TOOLWRIGHT_CORPORA=DIR cargo bench -p toolwright-kb -- quality      with TOOLWRIGHT_MODELS=DIR: vector and hybrid
//!   search too
//!
//! Vectors are synthetic (clusters with noise, 384 dimensions): the speed of a model is not measured. Word frequencies
//! are those of natural text.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "kb/quality.rs"]
mod quality;
#[path = "kb/speed.rs"]
mod speed;
#[path = "kb/synthetic.rs"]
mod synthetic;

use std::error::Error;
use std::path::Path;

use toolwright_kb::store::postgres::Options;
use toolwright_kb::store::{Backend, Embedded, Postgres};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let has_argument = |name: &str| arguments.iter().any(|argument| argument == name);
    let postgres = arguments.iter().position(|argument| argument == "--postgres");
    let location = Location { postgres: postgres.and_then(|at| arguments.get(at + 1)).cloned() };
    let is_all = !has_argument("speed") && !has_argument("quality");
    if is_all || has_argument("speed") {
        let mut sizes = vec![10_000, 100_000];
        if has_argument("--large") {
            sizes.push(1_000_000);
        }
        println!("{}", speed::HEADER);
        for size in sizes {
            speed::run(size, &location)?;
        }
    }
    match std::env::var_os("TOOLWRIGHT_CORPORA") {
        Some(corpora) if is_all || has_argument("quality") => quality::run(corpora.as_ref(), &location)?,
        None if has_argument("quality") => {
            return Err("set TOOLWRIGHT_CORPORA to the directory of the test sets".into());
        }
        _ => {}
    }
    Ok(())
}

/// Where knowledge bases are created: below a directory, or in a database.
struct Location {
    postgres: Option<String>,
}

impl Location {
    /// Opens the store of a directory.
    fn open(&self, dir: &Path) -> Result<Box<dyn Backend>> {
        let Some(url) = &self.postgres else { return Ok(Box::new(Embedded::open(&dir.join("kb"))?)) };
        let schema = format!("bench {}", dir.display());
        Ok(Box::new(Postgres::new(url, Options { schema, ..Options::default() })?))
    }
}
