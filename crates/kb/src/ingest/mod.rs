//! Ingestion: finds and parses files, compares them with the store, and writes the changes in one commit.
//!
//! - Unchanged files are recognized by their digest, unchanged records of a changed file by their own.
//! - Records that disappeared from a file, and files that disappeared from a directory, are removed.
//! - A line or file that cannot be parsed is reported with its position; the others are ingested.
//! - An id made from a file name stays with its file. If two files would get the same id, a directory name is added.

mod files;
mod front_matter;
mod jsonl;
mod markdown;
mod record_input;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::record::{Namespace, Record, RecordKey};
use crate::store::{Backend, Result, SourceDigest, StoreWriter};

/// Part of every source digest. Change it when the same file yields other records.
const FORMAT_VERSION: &[u8] = b"ingest 1";
/// The digest of a file with problems, so that it is parsed again the next time.
const INCOMPLETE_DIGEST: SourceDigest = [0; 32];

/// The values of fields that a record leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    pub namespace: Namespace,
    /// The owner of records in `personal`.
    pub owner: Option<String>,
}

/// A file or line that could not be ingested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
}

impl Problem {
    fn new(file: impl ToString, line: Option<usize>, message: impl Into<String>) -> Self {
        Self { file: file.to_string(), line, message: message.into() }
    }
}

/// The result of an ingest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// All files.
    pub files: usize,
    /// The files that have not changed.
    pub unchanged_files: usize,
    /// The records that are new or have changed.
    pub put: usize,
    /// The unchanged records of changed files.
    pub unchanged: usize,
    pub removed: usize,
    pub problems: Vec<Problem>,
}

/// Progress counters for display: an ingest counts bytes of files, embedding counts records.
#[derive(Debug, Default)]
pub struct Progress {
    pub done: AtomicUsize,
    pub total: AtomicUsize,
}

/// An ingest of files and directories.
#[derive(Debug)]
pub struct Ingest<'a> {
    /// Source names are relative to this directory, so that a project may move.
    pub base: &'a Path,
    pub defaults: &'a Defaults,
    pub progress: &'a Progress,
}

/// A record with the line at which it begins, or an error.
type ParseResult = std::result::Result<(usize, Record), ParseError>;

#[derive(Debug)]
struct ParseError {
    line: Option<usize>,
    message: String,
}

/// A file as parsers see it, besides its text.
#[derive(Debug, Clone, Copy)]
struct FileContext<'a> {
    path: &'a Path,
    source: &'a str,
    /// The file's name in generated ids.
    name: &'a str,
    defaults: &'a Defaults,
}

struct ChangedFile {
    path: PathBuf,
    source: String,
}

impl Ingest<'_> {
    /// Updates the store to the current content of the paths, in one commit.
    pub fn run(&self, store: &dyn Backend, paths: &[PathBuf]) -> Result<Report> {
        let mut writer = store.begin_write()?;
        let mut run = Run::default();
        let files = files::find_files(paths, &mut run.report.problems);
        let digests = store.source_digests()?;
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len() as usize);
        self.progress.total.store(files.iter().map(size).sum(), Ordering::Relaxed);
        let changed = self.find_changed(&files, &digests, &mut run);
        let present: HashSet<String> = files.iter().map(|file| self.source_name(file)).collect();
        let (removed, elsewhere) = self.split_absent(paths, digests.into_keys(), &present);
        run.unread_sources.extend(elsewhere.into_iter().filter(|source| self.base.join(source).exists()));
        for file in &changed {
            run.claim_unread_ids(store)?;
            self.ingest_file(store, writer.as_mut(), file, &mut run)?;
        }
        for source in &removed {
            run.stale_keys.extend(store.records_of_source(source)?.iter().map(|known| known.key));
            writer.set_source_digest(source, None)?;
        }
        // Last, because a record may have moved to another file.
        for key in std::mem::take(&mut run.stale_keys) {
            if !run.claimed.contains_key(&key) {
                writer.remove(key)?;
                run.report.removed += 1;
            }
        }
        writer.commit()?;
        Ok(run.report)
    }

    /// Splits the stored sources that are not present into those below the given directories, which were removed, and
    /// those elsewhere.
    fn split_absent(
        &self,
        paths: &[PathBuf],
        sources: impl Iterator<Item = String>,
        present: &HashSet<String>,
    ) -> (Vec<String>, Vec<String>) {
        let directories: Vec<String> =
            paths.iter().filter(|path| path.is_dir()).map(|path| self.source_name(path)).collect();
        let is_below = |source: &String| {
            directories.iter().any(|dir| {
                dir.is_empty() || source.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
            })
        };
        sources.filter(|source| !present.contains(source)).partition(is_below)
    }

    /// The files whose digest has changed. Counts the others.
    fn find_changed(
        &self,
        files: &[PathBuf],
        digests: &BTreeMap<String, SourceDigest>,
        run: &mut Run,
    ) -> Vec<ChangedFile> {
        let mut changed = Vec::new();
        run.report.files = files.len();
        for path in files {
            let source = self.source_name(path);
            match fs::read(path) {
                Err(error) => run.report.problems.push(unreadable(&source, &error)),
                Ok(bytes) if digests.get(&source) == Some(&self.digest(&bytes)) => {
                    run.report.unchanged_files += 1;
                    run.unread_sources.push(source);
                    self.progress.done.fetch_add(bytes.len(), Ordering::Relaxed);
                }
                // Dropped and read again later: all files together may not fit into memory.
                Ok(_) => changed.push(ChangedFile { path: path.clone(), source }),
            }
        }
        changed
    }

    fn ingest_file(
        &self,
        store: &dyn Backend,
        writer: &mut dyn StoreWriter,
        file: &ChangedFile,
        run: &mut Run,
    ) -> Result<()> {
        let source = &file.source;
        run.source_names.push(source.clone());
        let bytes = match fs::read(&file.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                run.report.problems.push(unreadable(source, &error));
                return Ok(());
            }
        };
        let stored = store.records_of_source(source)?.into_iter().map(|known| (known.key, known.digest));
        let mut stored: HashMap<RecordKey, u64> = stored.collect();
        let problems_before = run.report.problems.len();
        let done = self.progress.done.load(Ordering::Relaxed);
        for parsed in self.parse(file, &bytes, &stored, &run.claimed) {
            match parsed.and_then(|parsed| run.claim_id(parsed)) {
                Err(error) => run.report.problems.push(Problem::new(source, error.line, error.message)),
                Ok(record) if stored.remove(&record.key()) == Some(record.digest()) => {
                    run.report.unchanged += 1;
                }
                Ok(record) => {
                    writer.put(&record, source)?;
                    run.report.put += 1;
                }
            }
        }
        self.progress.done.store(done + bytes.len(), Ordering::Relaxed);
        run.stale_keys.extend(stored.into_keys());
        let is_complete = run.report.problems.len() == problems_before;
        let digest = if is_complete { self.digest(&bytes) } else { INCOMPLETE_DIGEST };
        writer.set_source_digest(source, Some(digest))
    }

    fn parse<'a>(
        &'a self,
        file: &'a ChangedFile,
        bytes: &'a [u8],
        stored: &HashMap<RecordKey, u64>,
        claimed: &ClaimedIds,
    ) -> Box<dyn Iterator<Item = ParseResult> + 'a> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let message = "not UTF-8 text: convert it to UTF-8".to_owned();
            return Box::new(std::iter::once(Err(ParseError { line: None, message })));
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Box::new(std::iter::empty());
        }
        let parse = match files::detect_format(&file.path) {
            Some(files::Format::Jsonl) => {
                return Box::new(jsonl::parse(text, &file.source, self.defaults, &self.progress.done));
            }
            Some(files::Format::Markdown) => markdown::parse_markdown,
            Some(files::Format::Text) => markdown::parse_text,
            None => return Box::new(std::iter::empty()),
        };
        let parse_as = |name: &String| {
            parse(FileContext { path: &file.path, source: &file.source, name, defaults: self.defaults }, text)
        };
        let parsed = files::candidate_names(&file.path);
        Box::new(choose_ids(parsed.iter().map(parse_as), stored, claimed).into_iter())
    }

    /// The digest of everything that determines a file's records.
    fn digest(&self, bytes: &[u8]) -> SourceDigest {
        let owner = self.defaults.owner.as_deref().unwrap_or("");
        let mut hash = Sha256::new();
        for part in [FORMAT_VERSION, self.defaults.namespace.as_str().as_bytes(), owner.as_bytes()] {
            hash.update(part);
            hash.update([0]);
        }
        hash.update(bytes);
        hash.finalize().into()
    }

    /// The path relative to the base directory, if it is below it.
    fn source_name(&self, path: &Path) -> String {
        let absolute = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let path = absolute(path);
        let base = if self.base.as_os_str().is_empty() { Path::new(".") } else { self.base };
        path.strip_prefix(absolute(base)).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

/// The place of each id: the index of its source, and the line if the source was parsed.
type ClaimedIds = HashMap<RecordKey, (usize, Option<usize>)>;

/// The state of an ingest.
#[derive(Default)]
struct Run {
    report: Report,
    /// The sources whose ids are claimed.
    source_names: Vec<String>,
    /// Sources that are not parsed, and whose ids are not claimed yet.
    unread_sources: Vec<String>,
    claimed: ClaimedIds,
    /// The records that are no longer in their source.
    stale_keys: Vec<RecordKey>,
}

impl Run {
    /// Claims the ids of sources that are not parsed.
    fn claim_unread_ids(&mut self, store: &dyn Backend) -> Result<()> {
        for source in std::mem::take(&mut self.unread_sources) {
            let index = self.source_names.len();
            let records = store.records_of_source(&source)?;
            self.claimed.extend(records.iter().map(|known| (known.key, (index, None))));
            self.source_names.push(source);
        }
        Ok(())
    }

    /// The record, unless its id is already claimed.
    fn claim_id(&mut self, (line, record): (usize, Record)) -> std::result::Result<Record, ParseError> {
        match self.claimed.entry(record.key()) {
            Entry::Vacant(vacant) => {
                vacant.insert((self.source_names.len() - 1, Some(line)));
                Ok(record)
            }
            Entry::Occupied(occupied) => {
                let (source, other_line) = occupied.get();
                let other_line = other_line.map(|line| format!(":{line}")).unwrap_or_default();
                let place = format!("{}{other_line}", self.source_names[*source]);
                let message = format!("id `{}` is already used at {place}: ids must be unique", record.id);
                Err(ParseError { line: Some(line), message })
            }
        }
    }
}

/// Of a file's records under several names, those with the ids that the file already has in the store, or else the
/// first whose ids are free.
fn choose_ids(
    alternatives: impl Iterator<Item = Vec<ParseResult>>,
    stored: &HashMap<RecordKey, u64>,
    claimed: &ClaimedIds,
) -> Vec<ParseResult> {
    let mut best: Option<(bool, Vec<ParseResult>)> = None;
    for parsed in alternatives {
        let keys: Vec<RecordKey> = parsed.iter().flatten().map(|(_, record)| record.key()).collect();
        let is_free = !keys.iter().any(|key| claimed.contains_key(key));
        if is_free && (stored.is_empty() || keys.iter().any(|key| stored.contains_key(key))) {
            return parsed;
        }
        match &best {
            Some((was_free, _)) if *was_free || !is_free => {}
            _ => best = Some((is_free, parsed)),
        }
    }
    best.map(|(_, parsed)| parsed).unwrap_or_default()
}

fn unreadable(source: &str, error: &std::io::Error) -> Problem {
    Problem::new(source, None, format!("cannot read it: {error}"))
}
