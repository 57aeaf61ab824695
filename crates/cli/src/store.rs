//! The store that the configuration names.

use std::path::Path;
use std::time::{Duration, Instant};

use toolwright_orchestrator::store::{self, Memory, Postgres, Sqlite, Store, postgres, sqlite};

use crate::config::Config;
use crate::output::Failure;

const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Opens the store at a URL.
pub async fn open(url: &str) -> Result<Store, Failure> {
    open_or(url, None).await
}

/// Opens the store for one call or answer. While `toolwright serve` has the file, that is the one to ask: `request` is
/// the path and what else curl needs.
pub async fn open_for(config: &Config, request: &str) -> Result<Store, Failure> {
    let ask = format!(
        "if that is `toolwright serve`, ask it: curl -s http://{}{request}\n        (where keys are asked for, with -H 'authorization: Bearer …')",
        config.listen()
    );
    open_or(&config.store, Some(ask)).await
}

async fn open_or(url: &str, in_use: Option<String>) -> Result<Store, Failure> {
    let failed = |error: store::Error| {
        let help = match (&error, in_use) {
            (store::Error::InUse(_), Some(help)) => help,
            _ => "another store can be named by `--store URL`; `--store memory:` keeps nothing".to_owned(),
        };
        Failure::new(error, help)
    };
    if url == "memory:" || url == "sqlite::memory:" {
        return Ok(Store::Memory(Memory::default()));
    }
    if let Some(path) = url.strip_prefix("sqlite:") {
        if path.is_empty() {
            return Err(Failure::usage(
                "`sqlite:` names no file",
                "use sqlite:PATH, or memory: to keep nothing",
            ));
        }
        return embedded(Path::new(path)).await.map(Store::Sqlite).map_err(failed);
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let connected = Postgres::connect(url, postgres::Options::default()).await;
        return connected.map(Store::Postgres).map_err(failed);
    }
    Err(unknown_form())
}

pub fn unknown_form() -> Failure {
    Failure::usage(
        "the store's URL has no form that is known",
        "use sqlite:PATH, postgres://USER@HOST/DATABASE or memory: (`[store] url`, TOOLWRIGHT_STORE or --store)",
    )
}

/// Waits a little for another command that is at work on the same file.
async fn embedded(path: &Path) -> Result<Sqlite, store::Error> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match Sqlite::open(path, sqlite::Options::default()) {
            Err(store::Error::InUse(_)) if Instant::now() < give_up => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            opened => return opened,
        }
    }
}
