//! Whether files are the same as last time, told from their metadata alone.

use std::borrow::Cow;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::time::{Duration, SystemTime};

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
        // With fixed keys: stable within one program, and the cache is keyed by the program.
        let mut hasher = DefaultHasher::new();
        hasher.write(name.as_bytes());
        stamp(metadata, &mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.files += 1;
        let settled = newest(metadata)
            .and_then(|newest| SystemTime::now().duration_since(newest).ok())
            .is_some_and(|age| age > TIMESTAMP_STEP);
        self.trusted &= settled;
    }

    /// Takes the current state of `name` below `dir` into account. False when it cannot be read.
    pub fn add_path(&mut self, dir: &Path, name: &str) -> bool {
        let path = if name.is_empty() { Cow::Borrowed(dir) } else { Cow::Owned(dir.join(name)) };
        fs::metadata(path).map(|metadata| self.add(name, &metadata)).is_ok()
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

#[cfg(unix)]
fn stamp(metadata: &Metadata, hasher: &mut impl Hasher) {
    use std::os::unix::fs::MetadataExt;
    for word in [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()] {
        hasher.write_i64(word);
    }
    for word in [metadata.size(), metadata.ino(), metadata.dev()] {
        hasher.write_u64(word);
    }
}

#[cfg(not(unix))]
fn stamp(metadata: &Metadata, hasher: &mut impl Hasher) {
    use std::hash::Hash;
    metadata.modified().ok().hash(hasher);
    hasher.write_u64(metadata.len());
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
