//! The directory: what is in force, whether it has changed, and who may write.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tantivy::directory::MmapDirectory;
use tantivy::store::Compressor;
use tantivy::{Index, IndexReader, IndexSettings, ReloadPolicy};

use super::damaged;
use super::fields::{self, Fields};
use super::view::View;
use crate::store::{Error, Result};

/// Goes up when the layout changes.
const FORMAT: &str = "toolwright-kb 1";
const CURRENT: &str = "current";
const LOCK: &str = "lock";
/// File systems count time in steps; a change within one step of the look before would not be seen.
const STEP: Duration = Duration::from_millis(50);

/// An open folder and the state of it that was read last.
#[derive(Debug)]
pub struct Opened {
    stamp: Stamp,
    folder: PathBuf,
    reader: Reader,
    view: Arc<View>,
}

struct Reader(IndexReader);

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Reader")
    }
}

/// What tells that nothing has been committed since.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    current: (u64, SystemTime),
    words: (u64, SystemTime),
    vectors: SystemTime,
    taken: SystemTime,
}

impl Stamp {
    fn of(dir: &Path, folder: &Path) -> std::io::Result<Self> {
        let taken = SystemTime::now();
        let file = |path: &Path| fs::metadata(path).and_then(|found| Ok((found.ino(), found.modified()?)));
        Ok(Self {
            current: file(&dir.join(CURRENT))?,
            words: file(&words_in(folder).join("meta.json"))?,
            vectors: file(&vectors_in(folder))?.1,
            taken,
        })
    }

    /// Whether what was read under this stamp is what this later one stands for.
    fn covers(&self, now: &Self) -> bool {
        let newest = self.current.1.max(self.words.1).max(self.vectors);
        let is_settled = self.taken.duration_since(newest).is_ok_and(|age| age > STEP);
        is_settled && (self.current, self.words, self.vectors) == (now.current, now.words, now.vectors)
    }
}

impl Opened {
    /// The committed state, read again only if it has changed.
    pub fn current(dir: &Path, held: &mut Option<Self>) -> Result<Arc<View>> {
        if let Some(opened) = held {
            let stamp = Stamp::of(dir, &opened.folder);
            match stamp {
                Ok(stamp) if opened.stamp.covers(&stamp) => return Ok(Arc::clone(&opened.view)),
                Ok(stamp) if stamp.current == opened.stamp.current => {
                    opened.reader.0.reload().map_err(damaged)?;
                    let (searcher, fields) = (opened.reader.0.searcher(), opened.view.fields);
                    let view = View::of(searcher, fields, &vectors_in(&opened.folder), Some(&opened.view))?;
                    (opened.view, opened.stamp) = (Arc::new(view), stamp);
                    return Ok(Arc::clone(&opened.view));
                }
                // Another folder is in force.
                _ => *held = None,
            }
        }
        let opened = Self::open(dir)?;
        let view = Arc::clone(&opened.view);
        *held = Some(opened);
        Ok(view)
    }

    fn open(dir: &Path) -> Result<Self> {
        let folder = in_force(dir)?;
        let stamp = Stamp::of(dir, &folder).map_err(|error| unusable(dir, &error))?;
        let (index, fields) = open_index(&folder)?;
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(damaged)?;
        let view = Arc::new(View::of(reader.searcher(), fields, &vectors_in(&folder), None)?);
        Ok(Self { stamp, folder, reader: Reader(reader), view })
    }
}

/// Makes an empty knowledge base where there is none.
pub fn prepare(dir: &Path) -> Result<()> {
    if dir.join(CURRENT).exists() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(|error| unusable(dir, &error))?;
    let lock = lock_file(dir)?;
    // Another process may be at it: it does not take long.
    lock.lock().map_err(|error| unusable(dir, &error))?;
    if !dir.join(CURRENT).exists() {
        let folder = dir.join("1");
        create(&folder)?;
        put_in_force(dir, &folder)?;
    }
    Ok(())
}

/// Makes an empty folder; what a rebuild left there that died is removed.
pub fn create(folder: &Path) -> Result<(Index, Fields)> {
    let make = || {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(words_in(folder))?;
        fs::create_dir(vectors_in(folder))
    };
    make().map_err(|error| unusable(folder, &error))?;
    let (schema, fields) = fields::schema();
    let settings = IndexSettings { docstore_compression: Compressor::Lz4, ..IndexSettings::default() };
    let directory =
        MmapDirectory::open(words_in(folder)).map_err(|error| Error::Unusable(error.to_string()))?;
    let index =
        Index::builder().schema(schema).settings(settings).open_or_create(directory).map_err(damaged)?;
    fields::register(&index);
    Ok((index, fields))
}

/// The folder that `current` names.
pub fn in_force(dir: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(dir.join(CURRENT)).map_err(|error| unusable(dir, &error))?;
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(FORMAT), Some(name)) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(dir.join(name))
        }
        (Some(other), _) if other != FORMAT => Err(Error::Unusable(format!(
            "{} was made by another version (`{other}`): remove it and add the sources again",
            dir.display()
        ))),
        _ => Err(Error::Unusable(format!(
            "{} is damaged: remove the directory and add the sources again",
            dir.join(CURRENT).display()
        ))),
    }
}

/// Replaces `current` in one step.
pub fn put_in_force(dir: &Path, folder: &Path) -> Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (path, temporary) = (dir.join(CURRENT), dir.join("current.new"));
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(format!("{FORMAT}\n{name}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| unusable(dir, &error))
}

/// The right to write, for as long as the file is open.
pub fn lock(dir: &Path) -> Result<File> {
    let file = lock_file(dir)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy),
        Err(TryLockError::Error(error)) => Err(unusable(dir, &error)),
    }
}

fn lock_file(dir: &Path) -> Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join(LOCK))
        .map_err(|error| unusable(dir, &error))
}

pub fn open_index(folder: &Path) -> Result<(Index, Fields)> {
    let (_, fields) = fields::schema();
    let index = Index::open_in_dir(words_in(folder)).map_err(damaged)?;
    fields::register(&index);
    Ok((index, fields))
}

pub fn words_in(folder: &Path) -> PathBuf {
    folder.join("words")
}

pub fn vectors_in(folder: &Path) -> PathBuf {
    folder.join("vectors")
}

/// What a directory takes on disk.
pub fn size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

pub fn unusable(dir: &Path, error: &std::io::Error) -> Error {
    Error::Unusable(format!("{} cannot be used: {error}", dir.display()))
}
