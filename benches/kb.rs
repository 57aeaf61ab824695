//! The benchmark of the knowledge base: ingest, search over growing sizes with and without a filter of one in a
//! hundred, recall of the part by vector against an exact comparison, memory; and the quality of the answers on
//! public test sets.
//!
//!   cargo bench -p toolwright-kb                           speed at 10,000 and 100,000 records, quality if there are sets
//!   cargo bench -p toolwright-kb -- speed --large          1,000,000 too
//!   cargo bench -p toolwright-kb -- speed --postgres URL   in a database (`scripts/postgres start --vector` gives one)
//!   TOOLWRIGHT_CORPORA=DIR cargo bench -p toolwright-kb -- quality      TOOLWRIGHT_MODELS=DIR: by vector too
//!
//! Vectors are made up (clusters with noise, 384 numbers each): a model's own speed is no part of it. Words have the
//! frequencies of a natural text.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "kb/made_up.rs"]
mod made_up;
#[path = "kb/quality.rs"]
mod quality;
#[path = "kb/speed.rs"]
mod speed;

use std::error::Error;
use std::path::Path;

use toolwright_kb::store::postgres::Options;
use toolwright_kb::store::{Embedded, Postgres, Store};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let asks_for = |name: &str| arguments.iter().any(|argument| argument == name);
    let postgres = arguments.iter().position(|argument| argument == "--postgres");
    let place = Place { postgres: postgres.and_then(|at| arguments.get(at + 1)).cloned() };
    let is_all = !asks_for("speed") && !asks_for("quality");
    if is_all || asks_for("speed") {
        let mut sizes = vec![10_000, 100_000];
        if asks_for("--large") {
            sizes.push(1_000_000);
        }
        println!("{}", speed::HEAD);
        for size in sizes {
            speed::run(size, &place)?;
        }
    }
    match std::env::var_os("TOOLWRIGHT_CORPORA") {
        Some(corpora) if is_all || asks_for("quality") => quality::run(corpora.as_ref(), &place)?,
        None if asks_for("quality") => {
            return Err("name the folder of the test sets by TOOLWRIGHT_CORPORA".into());
        }
        _ => {}
    }
    Ok(())
}

/// Where knowledge bases are made: below a directory, or in a database.
struct Place {
    postgres: Option<String>,
}

impl Place {
    /// The same one for the same directory.
    fn open(&self, dir: &Path) -> Result<Store> {
        let Some(url) = &self.postgres else { return Ok(Store::Embedded(Embedded::open(&dir.join("kb"))?)) };
        let schema = format!("bench {}", dir.display());
        Ok(Store::Postgres(Box::new(Postgres::new(url, Options { schema, ..Options::default() })?)))
    }
}
