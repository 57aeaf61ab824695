//! Detects changed files by their metadata alone.

#![expect(clippy::disallowed_methods, reason = "a file that was just written may still change")]

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// File systems have coarse timestamps: a file changed within this time before it is read may change again without a
/// change of its timestamp.
const TIMESTAMP_RESOLUTION: Duration = Duration::from_millis(50);

/// Identity, size and times of a set of files, as one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    hash: u64,
    files: u32,
    /// The metadata may not show a change of the files.
    distrusted: bool,
}

impl Fingerprint {
    /// Adds a file. The order of files does not matter.
    pub fn add(&mut self, name: &str, metadata: &Metadata) {
        self.add_stamp(name, file_stamp(metadata));
        let settled = newest(metadata)
            .and_then(|newest| SystemTime::now().duration_since(newest).ok())
            .is_some_and(|age| age > TIMESTAMP_RESOLUTION);
        self.distrusted |= !settled;
    }

    fn add_stamp(&mut self, name: &str, stamp: FileStamp) {
        // Its keys are fixed, so hashes are stable within one program; the cache is keyed by the program.
        let mut hasher = DefaultHasher::new();
        hasher.write(name.as_bytes());
        stamp.hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.files += 1;
    }

    /// Adds the current state of a directory, if it can be read.
    pub fn add_dir(&mut self, dir: &Path) {
        if let Ok(metadata) = fs::metadata(dir) {
            self.add("", &metadata);
        }
    }

    /// The current fingerprint of `dir` and of the files `names` in it; `None` if one cannot be read.
    pub fn read<'n>(dir: &Path, names: impl Iterator<Item = &'n str>) -> Option<Self> {
        let mut fingerprint = Self::default();
        for name in iter::once("").chain(names) {
            fingerprint.add_stamp(name, file_stamp(&fs::metadata(dir.join(name)).ok()?));
        }
        Some(fingerprint)
    }

    /// Marks the files as ones whose changes the metadata may not show.
    pub fn mark_unreliable(&mut self) {
        self.distrusted = true;
    }

    /// Whether an equal fingerprint later means that the files are unchanged.
    pub const fn is_trusted(&self) -> bool {
        !self.distrusted
    }

    /// Whether both describe the same files in the same state.
    pub const fn matches(&self, other: &Self) -> bool {
        self.hash == other.hash && self.files == other.files
    }
}

/// Modification time, change time, size and inode.
type FileStamp = [i128; 4];

#[cfg(unix)]
fn file_stamp(metadata: &Metadata) -> FileStamp {
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
fn file_stamp(metadata: &Metadata) -> FileStamp {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    [modified.map_or(0, |time| i128::try_from(time.as_nanos()).unwrap_or(0)), 0, metadata.len().into(), 0]
}

#[cfg(unix)]
fn newest(metadata: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    // The change time advances even if the modification time is set back.
    let changed =
        Duration::new(u64::try_from(metadata.ctime()).ok()?, u32::try_from(metadata.ctime_nsec()).ok()?);
    Some((SystemTime::UNIX_EPOCH + changed).max(metadata.modified().ok()?))
}

#[cfg(not(unix))]
fn newest(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}
