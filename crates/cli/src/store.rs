//! Opens the store that the configuration names.

use std::path::Path;
use std::time::{Duration, Instant};

use toolwright_orchestrator::store::{self, Memory, Postgres, Sqlite, Store, postgres, sqlite};

use crate::config::{Config, without_password};
use crate::output::Failure;

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The kind of a store, as its URL names it.
pub enum StoreUrl<'a> {
    Memory,
    Sqlite(&'a Path),
    Postgres,
}

impl<'a> StoreUrl<'a> {
    pub fn parse(url: &'a str) -> Result<Self, Failure> {
        match url.split_once(':') {
            Some(("memory", "") | ("sqlite", ":memory:")) => Ok(Self::Memory),
            Some(("sqlite", "")) => Err(Failure::usage(
                "the store's URL `sqlite:` names no file",
                "use sqlite:PATH, or memory: to store nothing",
            )),
            Some(("sqlite", path)) => Ok(Self::Sqlite(Path::new(path))),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres),
            _ => Err(Failure::usage(
                format!("the store's URL {:?} has an unknown form", without_password(url)),
                "use sqlite:PATH, postgres://USER@HOST/DATABASE or memory: (`[store] url`, TOOLWRIGHT_STORE or --store)",
            )),
        }
    }
}

/// Opens the store at a URL.
pub async fn open(url: &str) -> Result<Store, Failure> {
    open_with_help(url, None).await
}

/// Opens the store for one call or answer. If `toolwright serve` uses the file, the help text names the request to send
/// to the server instead: `request` is the path and the other arguments of curl.
pub async fn open_for(config: &Config, request: &str) -> Result<Store, Failure> {
    let help = format!(
        "if that is `toolwright serve`, send the request to it: curl -s http://{}{request}\n        (if the server has keys, with -H 'authorization: Bearer …')",
        config.settings.server.listen
    );
    open_with_help(&config.store, Some(help)).await
}

async fn open_with_help(url: &str, help_if_in_use: Option<String>) -> Result<Store, Failure> {
    let failure = |error: store::Error| {
        let help = match (&error, help_if_in_use) {
            (store::Error::InUse(_), Some(help)) => help,
            _ => "name another store with `--store URL`; `--store memory:` stores nothing".to_owned(),
        };
        Failure::new(error, help)
    };
    let opened = match StoreUrl::parse(url)? {
        StoreUrl::Memory => Ok(Store::Memory(Memory::default())),
        StoreUrl::Sqlite(path) => open_sqlite(path).await.map(Store::Sqlite),
        StoreUrl::Postgres => Postgres::connect(url, postgres::Options::default()).await.map(Store::Postgres),
    };
    opened.map_err(failure)
}

/// Waits a little if another command uses the file.
async fn open_sqlite(path: &Path) -> Result<Sqlite, store::Error> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match Sqlite::open(path, sqlite::Options::default()) {
            Err(store::Error::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}
