//! The file and what is beside it: its directory, its lock, who may read it, and how a connection is set up.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::FlockOperation;

use crate::store::{Error, Result};

/// Whoever works on the file by hand may hold it up this long.
const BUSY: Duration = Duration::from_secs(5);
/// Statements that stay prepared.
const STATEMENTS: usize = 32;
/// Of what every call writes there is much and it is written once: large pages take fewer steps.
const PAGE: u32 = 16_384;
/// What was written is seldom read again.
const CACHE_KB: i32 = 512;
/// A backstop: the writer copies the log back long before it has this many pages.
const LOG_PAGES: u32 = 4_096;

/// Where a file is.
#[derive(Debug)]
pub struct Location(PathBuf);

/// What a connection is for.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    Serve,
    Read,
}

/// Held for as long as a process serves from the file.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "it is held, not used")] File);

impl Location {
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Makes the directory, for its owner alone.
    pub fn prepare(path: &Path) -> Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|cause| failed("make", directory, &cause))?;
        }
        Ok(Self::at(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes sure that no other process serves from this file.
    pub fn lock(&self) -> Result<Lock> {
        let path = self.0.with_added_extension("lock");
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = open.map_err(|cause| failed("open", &path, &cause))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(taken(&self.0, &mut file)),
            Err(cause) => return Err(failed("lock", &path, &cause.into())),
        }
        // Only a help for whoever is refused: the lock does not depend on it.
        let noted = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
        noted.map_err(|cause| failed("write", &path, &cause))?;
        Ok(Lock(file))
    }

    /// Makes the file if it is not there, for its owner alone; SQLite gives its log the same permissions.
    pub fn create(&self) -> Result<()> {
        let path = &self.0;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => {
                // The directory's entry must be as durable as what will be in the file.
                let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
                let directory = File::open(directory.unwrap_or(Path::new(".")));
                let synced = file.sync_all().and_then(|()| directory?.sync_all());
                synced.map_err(|cause| failed("make", path, &cause))
            }
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => self.restrict(),
            Err(cause) => Err(failed("make", path, &cause)),
        }
    }

    /// Sessions and arguments are nobody else's business.
    fn restrict(&self) -> Result<()> {
        let path = &self.0;
        let metadata = fs::metadata(path).map_err(|cause| failed("read", path, &cause))?;
        let mut permissions = metadata.permissions();
        if permissions.mode() & 0o077 == 0 {
            return Ok(());
        }
        permissions.set_mode(0o600);
        fs::set_permissions(path, permissions).map_err(|cause| failed("restrict", path, &cause))
    }

    pub fn connect(&self, access: Access) -> Result<Connection> {
        let mode = match access {
            Access::Serve => OpenFlags::SQLITE_OPEN_READ_WRITE,
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let connection = Connection::open_with_flags(&self.0, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|cause| self.explain(&cause))?;
        self.set_up(&connection).map_err(|cause| self.explain(&cause))?;
        Ok(connection)
    }

    fn set_up(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Reads the header, and so finds out whether this is a database at all.
        connection.pragma_query_value(None, "schema_version", |_| Ok(()))
    }

    /// Makes a connection fit for writing. The first thing that changes the file: what it is must be known by now.
    pub fn write_through(&self, connection: &Connection) -> Result<()> {
        // Counts for a new file alone.
        connection.pragma_update(None, "page_size", PAGE)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            let why = format!("{}: its file system does not allow a write-ahead log", self.0.display());
            return Err(Error::Unavailable(why));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        connection.pragma_update(None, "cache_size", -CACHE_KB)?;
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(())
    }

    fn explain(&self, cause: &rusqlite::Error) -> Error {
        let path = self.0.display();
        match super::error(cause) {
            Error::Corrupt(why) => Error::Corrupt(format!("{path}: {why}; nothing was changed")),
            _ => Error::Unavailable(format!("{path}: {cause}")),
        }
    }
}

fn taken(path: &Path, lock: &mut File) -> Error {
    let mut owner = String::new();
    let read = lock.rewind().and_then(|()| lock.read_to_string(&mut owner));
    let owner = match (read, owner.trim()) {
        (Ok(_), id) if !id.is_empty() => format!("process {id}"),
        _ => "another process".to_owned(),
    };
    let path = path.display();
    Error::InUse(format!(
        "{owner} serves from {path}, and only one can: stop it, name another file, or use PostgreSQL, which several \
         servers can share"
    ))
}

fn failed(what: &str, path: &Path, cause: &io::Error) -> Error {
    Error::Unavailable(format!("cannot {what} {}: {cause}", path.display()))
}
