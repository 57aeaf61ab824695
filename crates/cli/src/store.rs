//! The store that the configuration names.

use std::path::Path;

use toolwright_orchestrator::store::{self, Memory, Postgres, Sqlite, Store, postgres, sqlite};

use crate::output::Failure;

/// Opens the store at a URL.
pub async fn open(url: &str) -> Result<Store, Failure> {
    if url == "memory:" {
        return Ok(Store::Memory(Memory::default()));
    }
    if let Some(path) = url.strip_prefix("sqlite:") {
        return Sqlite::open(Path::new(path), sqlite::Options::default()).map(Store::Sqlite).map_err(failed);
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let connected = Postgres::connect(url, postgres::Options::default()).await;
        return connected.map(Store::Postgres).map_err(failed);
    }
    Err(Failure::usage(
        "the store's URL has no form that is known",
        "use sqlite:PATH, postgres://USER@HOST/DATABASE or memory: (`[store] url`, TOOLWRIGHT_STORE or --store)",
    ))
}

fn failed(error: store::Error) -> Failure {
    let help = "another store can be named by `--store URL`; `--store memory:` keeps nothing";
    Failure::new(error, help)
}
