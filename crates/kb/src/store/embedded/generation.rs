//! The directory of a store: the current generation of its files, the detection of commits, and the write lock.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::MmapDirectory;
use tantivy::store::Compressor;
use tantivy::{Index, IndexReader, IndexSettings, ReloadPolicy};

use super::schema::{self, Fields};
use super::snapshot::Snapshot;
use super::vector_files::list_vector_files;
use super::{corrupt, io_error};
use crate::store::{Error, Result};

/// Change it when the layout changes.
const FORMAT: &str = "toolwright-kb 1";
const CURRENT_FILE: &str = "current";
const LOCK_FILE: &str = "lock";

/// An open generation and its last snapshot.
pub struct OpenGeneration {
    path: PathBuf,
    version: CommitVersion,
    reader: IndexReader,
    snapshot: Arc<Snapshot>,
}

/// The files that commits replace. If they are the same, there was no commit in between.
#[derive(PartialEq, Eq)]
struct CommitVersion {
    current: String,
    index_meta: Vec<u8>,
    vector_files: Vec<PathBuf>,
}

impl CommitVersion {
    fn read(dir: &Path, generation: &Path) -> Result<Self> {
        let index_meta = index_dir(generation).join("meta.json");
        Ok(Self {
            current: fs::read_to_string(dir.join(CURRENT_FILE)).map_err(|error| io_error(dir, &error))?,
            index_meta: fs::read(&index_meta).map_err(|error| io_error(&index_meta, &error))?,
            vector_files: list_vector_files(&vectors_dir(generation))?,
        })
    }
}

impl OpenGeneration {
    /// The last committed state, reloaded only if there was a commit.
    pub fn snapshot(dir: &Path, opened: &mut Option<Self>) -> Result<Arc<Snapshot>> {
        if let Some(open) = opened {
            match CommitVersion::read(dir, &open.path) {
                Ok(version) if version == open.version => return Ok(Arc::clone(&open.snapshot)),
                Ok(version) if version.current == open.version.current => {
                    open.reader.reload().map_err(corrupt)?;
                    let (searcher, vectors) = (open.reader.searcher(), vectors_dir(&open.path));
                    let snapshot =
                        Snapshot::load(searcher, open.snapshot.fields, &vectors, Some(&open.snapshot))?;
                    (open.snapshot, open.version) = (Arc::new(snapshot), version);
                    return Ok(Arc::clone(&open.snapshot));
                }
                // A rebuild has replaced the generation.
                _ => *opened = None,
            }
        }
        Ok(Arc::clone(&opened.insert(Self::open_current(dir)?).snapshot))
    }

    /// Retries if a rebuild replaces the generation while it is being opened.
    fn open_current(dir: &Path) -> Result<Self> {
        loop {
            let path = current_generation(dir)?;
            match Self::open(dir, path.clone()) {
                Err(_) if current_generation(dir)? != path => {}
                result => return result,
            }
        }
    }

    fn open(dir: &Path, path: PathBuf) -> Result<Self> {
        let version = CommitVersion::read(dir, &path)?;
        let (index, fields) = open_index(&path)?;
        let reader: IndexReader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(corrupt)?;
        let snapshot = Arc::new(Snapshot::load(reader.searcher(), fields, &vectors_dir(&path), None)?);
        Ok(Self { path, version, reader, snapshot })
    }
}

/// Creates an empty knowledge base, unless there is one.
pub fn initialize(dir: &Path) -> Result<()> {
    if dir.join(CURRENT_FILE).exists() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(|error| io_error(dir, &error))?;
    // Waits for another process that initializes it.
    let lock = open_lock_file(dir)?;
    lock.lock().map_err(|error| io_error(dir, &error))?;
    if !dir.join(CURRENT_FILE).exists() {
        let generation = dir.join("1");
        create_generation(&generation)?;
        set_current(dir, &generation)?;
    }
    Ok(())
}

/// Creates an empty generation. Removes what an interrupted rebuild left there.
pub fn create_generation(path: &Path) -> Result<(Index, Fields)> {
    let create = || {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir_all(index_dir(path))?;
        fs::create_dir(vectors_dir(path))
    };
    create().map_err(|error| io_error(path, &error))?;
    let (schema, fields) = schema::build_schema();
    let settings = IndexSettings { docstore_compression: Compressor::Lz4, ..IndexSettings::default() };
    let directory =
        MmapDirectory::open(index_dir(path)).map_err(|error| Error::Unusable(error.to_string()))?;
    let index =
        Index::builder().schema(schema).settings(settings).open_or_create(directory).map_err(corrupt)?;
    schema::register_tokenizer(&index);
    Ok((index, fields))
}

/// The generation that the file `current` names.
pub fn current_generation(dir: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(dir.join(CURRENT_FILE)).map_err(|error| io_error(dir, &error))?;
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(FORMAT), Some(name)) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(dir.join(name))
        }
        (Some(other), _) if other != FORMAT => Err(Error::Unusable(format!(
            "{} has the format `{other}` instead of `{FORMAT}`: delete it and add the sources again",
            dir.display()
        ))),
        _ => Err(Error::Unusable(format!(
            "{} is corrupt: delete the directory and add the sources again",
            dir.join(CURRENT_FILE).display()
        ))),
    }
}

/// Replaces the file `current` atomically.
pub fn set_current(dir: &Path, generation: &Path) -> Result<()> {
    let name = generation.file_name().unwrap_or_default().to_string_lossy().into_owned();
    write_atomically(dir, CURRENT_FILE, |file| file.write_all(format!("{FORMAT}\n{name}\n").as_bytes()))
}

/// Writes a file under a temporary name, syncs it and renames it: a file with its final name is complete and durable.
pub fn write_atomically(
    dir: &Path,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<()> {
    let temporary = dir.join(format!("{name}.new"));
    let write_and_rename = || {
        let mut file = File::create(&temporary)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, dir.join(name))?;
        File::open(dir)?.sync_all()
    };
    write_and_rename().map_err(|error| io_error(dir, &error))
}

/// Takes the write lock, which lasts until the file is closed.
pub fn lock(dir: &Path) -> Result<File> {
    let file = open_lock_file(dir)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked),
        Err(TryLockError::Error(error)) => Err(io_error(dir, &error)),
    }
}

fn open_lock_file(dir: &Path) -> Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    options.open(dir.join(LOCK_FILE)).map_err(|error| io_error(dir, &error))
}

pub fn open_index(generation: &Path) -> Result<(Index, Fields)> {
    let (_, fields) = schema::build_schema();
    let index = Index::open_in_dir(index_dir(generation)).map_err(corrupt)?;
    schema::register_tokenizer(&index);
    Ok((index, fields))
}

fn index_dir(generation: &Path) -> PathBuf {
    generation.join("words")
}

pub fn vectors_dir(generation: &Path) -> PathBuf {
    generation.join("vectors")
}

/// The size of all files below a directory.
pub fn size_on_disk(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_on_disk(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
