//! The state file: its directory, its lock, its permissions, and the settings of its connections.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::FlockOperation;

use crate::store::{Error, Result};

/// How long a statement waits for another process that has the file locked, such as a person's `sqlite3`.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENT_CACHE_SIZE: usize = 32;
/// Records are written once and seldom read, so large pages need fewer writes.
const PAGE_BYTES: u32 = 16_384;
const PAGE_CACHE_KB: i32 = 512;
/// The writer checkpoints long before the write-ahead log has this many pages.
const MAX_LOG_PAGES: u32 = 4_096;

#[derive(Debug)]
pub struct StateFile(PathBuf);

impl StateFile {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Creates the directory with access for its owner only.
    pub fn in_new_directory(path: &Path) -> Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|cause| io_error("create", directory, &cause))?;
        }
        Ok(Self::new(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes the lock that keeps other processes from serving from this file, until the result is dropped.
    pub fn lock(&self, owner: &str) -> Result<File> {
        let path = self.0.with_added_extension("lock");
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = open.map_err(|cause| io_error("open", &path, &cause))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(in_use(&self.0, &mut file)),
            Err(cause) => return Err(io_error("lock", &path, &cause.into())),
        }
        // The text is for the error message of other processes only.
        let text = format!("{} {owner}", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(text.trim_end().as_bytes()));
        written.map_err(|cause| io_error("write", &path, &cause))?;
        Ok(file)
    }

    /// Creates the file if it does not exist, with access for its owner only. SQLite gives its log the same
    /// permissions.
    pub fn create(&self) -> Result<()> {
        let path = &self.0;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => {
                // The directory entry must be as durable as the contents.
                let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
                let directory = File::open(directory.unwrap_or(Path::new(".")));
                let synced = file.sync_all().and_then(|()| directory?.sync_all());
                synced.map_err(|cause| io_error("create", path, &cause))
            }
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => self.restrict(),
            Err(cause) => Err(io_error("create", path, &cause)),
        }
    }

    /// Removes the access of other users.
    fn restrict(&self) -> Result<()> {
        let path = &self.0;
        let metadata = fs::metadata(path).map_err(|cause| io_error("read", path, &cause))?;
        let mut permissions = metadata.permissions();
        if permissions.mode() & 0o077 == 0 {
            return Ok(());
        }
        permissions.set_mode(0o600);
        fs::set_permissions(path, permissions).map_err(|cause| io_error("restrict", path, &cause))
    }

    pub fn connect(&self, mode: OpenFlags) -> Result<Connection> {
        let connection = Connection::open_with_flags(&self.0, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|cause| self.open_error(cause))?;
        self.set_up(&connection).map_err(|cause| self.open_error(cause))?;
        Ok(connection)
    }

    fn set_up(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        // Reads the header, which fails if the file is not a database.
        connection.pragma_query_value(None, "schema_version", |_| Ok(()))
    }

    /// Configures a connection for writing. This changes the file, so its version must have been checked before.
    pub fn configure_writer(&self, connection: &Connection) -> Result<()> {
        // Takes effect in a new file only.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            let why = format!("{}: its file system does not support a write-ahead log", self.0.display());
            return Err(Error::Unavailable(why));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", MAX_LOG_PAGES)?;
        connection.pragma_update(None, "cache_size", -PAGE_CACHE_KB)?;
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(())
    }

    fn open_error(&self, cause: rusqlite::Error) -> Error {
        let path = self.0.display();
        let text = cause.to_string();
        match Error::from(cause) {
            Error::Corrupt(_) => Error::Corrupt(format!("{path}: {text}; nothing was changed")),
            _ => Error::Unavailable(format!("{path}: {text}")),
        }
    }
}

fn in_use(path: &Path, lock: &mut File) -> Error {
    let mut owner = String::new();
    let read = lock.rewind().and_then(|()| lock.read_to_string(&mut owner));
    let owner = match (read, owner.trim()) {
        (Ok(_), text) if !text.is_empty() => match text.split_once(' ') {
            Some((id, command)) => format!("process {id} (`{command}`)"),
            None => format!("process {text}"),
        },
        _ => "another process".to_owned(),
    };
    let path = path.display();
    Error::InUse(format!(
        "{owner} serves from {path}, and only one process can: stop it, name another file, or use PostgreSQL, \
         which several servers can share"
    ))
}

fn io_error(what: &str, path: &Path, cause: &io::Error) -> Error {
    Error::Unavailable(format!("cannot {what} {}: {cause}", path.display()))
}
