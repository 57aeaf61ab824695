//! Whether files are the same as last time, told from their metadata alone.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{io, iter};

use serde::{Deserialize, Serialize};

/// File systems stamp in steps; a file changed within this time of being read may change again unseen.
const TIMESTAMP_STEP: Duration = Duration::from_millis(50);

/// Identity, size and times of a set of files, as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    hash: u64,
    files: u32,
    trusted: bool,
}

impl Fingerprint {
    /// The fingerprint of nothing yet.
    pub const fn new() -> Self {
        Self { hash: 0, files: 0, trusted: true }
    }

    /// Takes one more file into account, in any order.
    pub fn add(&mut self, name: &str, metadata: &Metadata) {
        self.add_stamp(name, stamp(metadata));
        let settled = newest(metadata)
            .and_then(|newest| SystemTime::now().duration_since(newest).ok())
            .is_some_and(|age| age > TIMESTAMP_STEP);
        self.trusted &= settled;
    }

    fn add_stamp(&mut self, name: &str, stamp: Stamp) {
        // With fixed keys: stable within one program, and the cache is keyed by the program.
        let mut hasher = DefaultHasher::new();
        hasher.write(name.as_bytes());
        stamp.hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.files += 1;
    }

    /// Takes the current state of a directory into account. False when it cannot be read.
    pub fn add_dir(&mut self, dir: &Path) -> bool {
        fs::metadata(dir).map(|metadata| self.add("", &metadata)).is_ok()
    }

    /// Marks the set as one whose changes metadata may not show.
    pub fn distrust(&mut self) {
        self.trusted = false;
    }

    /// True when an equal fingerprint later really means "unchanged".
    pub const fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// True when both describe the same files in the same state.
    pub const fn matches(&self, other: &Self) -> bool {
        self.hash == other.hash && self.files == other.files
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::new()
    }
}

/// Modification time, change time, size and inode.
type Stamp = [i128; 4];

#[cfg(unix)]
fn stamp(metadata: &Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    [
        nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        metadata.size().into(),
        metadata.ino().into(),
    ]
}

#[cfg(unix)]
fn nanoseconds(seconds: impl Into<i128>, rest: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + rest.into()
}

#[cfg(not(unix))]
fn stamp(metadata: &Metadata) -> Stamp {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    [modified.map_or(0, |time| i128::try_from(time.as_nanos()).unwrap_or(0)), 0, metadata.len().into(), 0]
}

/// A directory that many files are looked at in: asking relative to it is cheaper than by whole paths.
#[derive(Debug)]
pub struct Root {
    #[cfg(unix)]
    handle: std::os::fd::OwnedFd,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

#[cfg(unix)]
impl Root {
    /// Opens the directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { handle: fs::File::open(path)?.into() })
    }

    /// The fingerprint of `dir` and of `names` inside it, as they are now.
    pub fn fingerprint<'n>(&self, dir: &str, names: impl Iterator<Item = &'n str>) -> Option<Fingerprint> {
        let mut now = Fingerprint::new();
        let mut path = String::with_capacity(dir.len() + 32);
        for name in iter::once("").chain(names) {
            path.clear();
            path.push_str(dir);
            path.push('/');
            path.push_str(name);
            let stat = rustix::fs::statat(&self.handle, path.as_str(), rustix::fs::AtFlags::empty()).ok()?;
            let stamp = [
                nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
                nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
                stat.st_size.into(),
                stat.st_ino.into(),
            ];
            now.add_stamp(name, stamp);
        }
        Some(now)
    }
}

#[cfg(not(unix))]
impl Root {
    /// Opens the directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned() })
    }

    /// The fingerprint of `dir` and of `names` inside it, as they are now.
    pub fn fingerprint<'n>(&self, dir: &str, names: impl Iterator<Item = &'n str>) -> Option<Fingerprint> {
        let mut now = Fingerprint::new();
        for name in iter::once("").chain(names) {
            now.add_stamp(name, stamp(&fs::metadata(self.path.join(dir).join(name)).ok()?));
        }
        Some(now)
    }
}

#[cfg(unix)]
fn newest(metadata: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    // The change time moves even when somebody sets the modification time back.
    let changed =
        Duration::new(u64::try_from(metadata.ctime()).ok()?, u32::try_from(metadata.ctime_nsec()).ok()?);
    Some((SystemTime::UNIX_EPOCH + changed).max(metadata.modified().ok()?))
}

#[cfg(not(unix))]
fn newest(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}
