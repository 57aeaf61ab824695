//! The file beside the store by which other commands find the server that uses it: its address, and a key that only the
//! owner of the file can read. It is written when the server listens, and removed when it stops.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolwright_server::auth::LocalKey;

use crate::store::StoreUrl;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerFile {
    /// The version of the program.
    pub version: String,
    pub process: u32,
    /// The URL of the server, such as `http://127.0.0.1:7300`.
    pub url: String,
    /// The address for MCP hosts that send lines.
    pub mcp: SocketAddr,
    key: String,
}

impl ServerFile {
    /// The file of this process.
    pub fn new(url: String, mcp: SocketAddr, key: &LocalKey) -> Self {
        let (version, process) = (VERSION.to_owned(), std::process::id());
        Self { version, process, url, mcp, key: key.reveal().to_owned() }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// The file beside a store; `None` for a store that several processes can use, or that is in memory.
    pub fn path(store: &str) -> Option<PathBuf> {
        let Ok(StoreUrl::Sqlite(path)) = StoreUrl::parse(store) else { return None };
        let mut name = path.as_os_str().to_owned();
        name.push(".server");
        Some(name.into())
    }

    /// `None` if the file does not exist or cannot be parsed.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Replaces the file. Only its owner can read it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.persist(path)?;
        Ok(())
    }
}
