//! Opens the store that the configuration names.

use std::path::Path;
use std::time::{Duration, Instant};

use toolwright_orchestrator::store::{self, Memory, Postgres, Sqlite, Store, sqlite};

use crate::args::{self, Format};
use crate::config::{Config, without_password};
use crate::output::{self, Failure};
use crate::server_client::ServerClient;
use crate::server_file::ServerFile;

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const OTHER_STORE: &str = "name another store with `--store URL`; `--store memory:` stores nothing";
const SHARE_A_SERVER: &str = "start `toolwright serve`: commands then share its store; or name another store with \
    `--store URL` (`--store memory:` stores nothing)";
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

/// How a command uses the store.
pub enum StoreAccess {
    Own(Box<Store>),
    /// Through the server that uses it.
    Server(ServerClient),
}

/// Opens the store, or finds the server that uses it. A message says that a command goes through the server.
pub async fn open_or_find_server(config: &Config) -> Result<StoreAccess, Failure> {
    let StoreUrl::Sqlite(path) = StoreUrl::parse(&config.store)? else {
        return open(config).await.map(Box::new).map(StoreAccess::Own);
    };
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match Sqlite::open(path, options()) {
            Ok(store) => return Ok(StoreAccess::Own(Box::new(Store::Sqlite(store)))),
            Err(error @ store::Error::InUse(_)) => {
                if let Some(file) = find_server(&config.store).await {
                    if config.format == Format::Human {
                        output::message(format_args!("through the server at {}", file.url));
                    }
                    return ServerClient::new(file).map(StoreAccess::Server);
                }
                if Instant::now() >= deadline {
                    return Err(Failure::new(error, SHARE_A_SERVER));
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Err(error) => return Err(Failure::new(error, OTHER_STORE)),
        }
    }
}

/// The lock of the file names this command.
fn options() -> sqlite::Options {
    let owner = match args::subcommand() {
        Some(name) => format!("toolwright {name}"),
        None => "toolwright".to_owned(),
    };
    sqlite::Options { owner, ..sqlite::Options::default() }
}

/// The server that uses a store and accepts connections. A file that a killed server has left leads nowhere.
pub async fn find_server(url: &str) -> Option<ServerFile> {
    let file = ServerFile::read(&ServerFile::path(url)?)?;
    let connecting = tokio::net::TcpStream::connect(file.mcp);
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.ok()?.ok()?;
    Some(file)
}

/// Opens the configured store.
pub async fn open(config: &Config) -> Result<Store, Failure> {
    open_with_help(config, OTHER_STORE).await
}

/// As [`open`], with this help text if another process uses the file.
pub async fn open_with_help(config: &Config, help_if_in_use: &str) -> Result<Store, Failure> {
    let url = config.store.as_str();
    let opened = match StoreUrl::parse(url)? {
        StoreUrl::Memory => Ok(Store::Memory(Memory::default())),
        StoreUrl::Sqlite(path) => open_sqlite(path).await.map(Store::Sqlite),
        StoreUrl::Postgres => {
            let options = config.settings.store.postgres_options();
            Postgres::connect(url, options).await.map(Store::Postgres)
        }
    };
    opened.map_err(|error| match ServerFile::path(url).as_deref().and_then(ServerFile::read) {
        Some(file) if matches!(error, store::Error::InUse(_)) => {
            let help = format!("the server at {} uses it; {help_if_in_use}", file.url);
            Failure::new(error, help)
        }
        _ if matches!(error, store::Error::InUse(_)) => Failure::new(error, help_if_in_use),
        _ => Failure::new(error, OTHER_STORE),
    })
}

/// Waits a little if another command uses the file.
async fn open_sqlite(path: &Path) -> Result<Sqlite, store::Error> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match Sqlite::open(path, options()) {
            Err(store::Error::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}
