//! How records come in: files are found, read, compared with what is kept, and put in one commit.
//!
//! - What has not changed costs nothing: a file is known by its digest, a record of a changed file by its own.
//! - What is gone from a file, and files that are gone from a directory, are removed.
//! - A line or file that cannot be read is reported with its place; the others are ingested.
//! - An id that is made of a file's name stays with its file; where two files would have one, a directory tells them apart.

mod front;
mod jsonl;
mod markdown;
mod raw;
mod walk;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::record::{Key, Namespace, Record};
use crate::store::{Backend, Digest, Result, Write};

/// Goes up when the same file gives other records.
const FORMAT: &[u8] = b"ingest 1";
/// The digest of a file that could not be read whole: it is read again the next time.
const UNSOUND: Digest = [0; 32];

/// What records have that do not say it themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    pub namespace: Namespace,
    /// Of records in `personal`.
    pub owner: Option<String>,
}

/// Something that could not be ingested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
}

/// What an ingest did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Files that were looked at.
    pub files: usize,
    /// Of these, the ones that were as they had been.
    pub unchanged_files: usize,
    /// Records that are new or have changed.
    pub put: usize,
    /// Records of changed files that are as they were.
    pub unchanged: usize,
    pub removed: usize,
    pub problems: Vec<Problem>,
}

/// How far it is; read by whoever shows it. An ingest counts bytes of files, the making of vectors records.
#[derive(Debug, Default)]
pub struct Progress {
    pub done: AtomicUsize,
    pub total: AtomicUsize,
}

/// One run over files and directories.
#[derive(Debug)]
pub struct Ingest<'a> {
    /// Names of sources are relative to it: the project may move.
    pub base: &'a Path,
    pub defaults: &'a Defaults,
    pub progress: &'a Progress,
}

/// A record with the line at which it begins, or what is wrong there.
type Parsed = std::result::Result<(usize, Record), Trouble>;

#[derive(Debug)]
struct Trouble {
    line: Option<usize>,
    message: String,
}

/// A file as its records are read.
#[derive(Debug, Clone, Copy)]
struct Reading<'a> {
    path: &'a Path,
    source: &'a str,
    /// What it is called in ids that it does not give.
    name: &'a str,
    defaults: &'a Defaults,
}

/// A file that is not as it was.
struct Changed {
    path: PathBuf,
    source: String,
}

impl Ingest<'_> {
    /// Brings the store to what the paths hold now. One commit, at the end.
    pub fn run(&self, store: &dyn Backend, paths: &[PathBuf]) -> Result<Report> {
        let mut writer = store.write()?;
        let mut run = Run::default();
        let files = walk::files(paths, &mut run.report.problems);
        let noted = store.sources()?;
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len() as usize);
        self.progress.total.store(files.iter().map(size).sum(), Ordering::Relaxed);
        let changed = self.changed(&files, &noted, &mut run);
        let directories: Vec<String> =
            paths.iter().filter(|path| path.is_dir()).map(|path| self.name_of(path)).collect();
        let is_below = |source: &str| {
            directories.iter().any(|dir| {
                dir.is_empty() || source.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
            })
        };
        let present: HashSet<String> = files.iter().map(|file| self.name_of(file)).collect();
        let elsewhere = noted.keys().filter(|source| !present.contains(*source) && !is_below(source));
        run.others.extend(elsewhere.filter(|source| self.base.join(source).exists()).cloned());
        for file in &changed {
            // The ids of files that are not read again are taken, too.
            run.take_ids_of_others(store)?;
            self.one(store, writer.as_mut(), file, &mut run)?;
        }
        for source in noted.keys().filter(|source| !present.contains(*source) && is_below(source)) {
            run.gone.extend(store.of_source(source)?.iter().map(|known| known.key));
            writer.note_source(source, None)?;
        }
        // Last: a record that moved to another file is there again.
        for key in std::mem::take(&mut run.gone) {
            if !run.seen.contains_key(&key) {
                writer.remove(key)?;
                run.report.removed += 1;
            }
        }
        writer.commit()?;
        Ok(run.report)
    }

    /// Those of the files that must be read; the others are counted.
    fn changed(&self, files: &[PathBuf], noted: &BTreeMap<String, Digest>, run: &mut Run) -> Vec<Changed> {
        let mut changed = Vec::new();
        run.report.files = files.len();
        for path in files {
            let source = self.name_of(path);
            match fs::read(path) {
                Err(error) => run.report.problems.push(unreadable(&source, &error)),
                Ok(bytes) if noted.get(&source) == Some(&self.digest(&bytes)) => {
                    run.report.unchanged_files += 1;
                    run.others.push(source);
                    self.progress.done.fetch_add(bytes.len(), Ordering::Relaxed);
                }
                Ok(_) => changed.push(Changed { path: path.clone(), source }),
            }
        }
        changed
    }

    /// One file.
    fn one(&self, store: &dyn Backend, writer: &mut dyn Write, file: &Changed, run: &mut Run) -> Result<()> {
        let source = &file.source;
        run.names.push(source.clone());
        // Not kept from the look before: all of them together may be more than the memory.
        let bytes = match fs::read(&file.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                run.report.problems.push(unreadable(source, &error));
                return Ok(());
            }
        };
        let known = store.of_source(source)?.into_iter().map(|known| (known.key, known.digest));
        let mut known: HashMap<Key, u64> = known.collect();
        let before = run.report.problems.len();
        let done = self.progress.done.load(Ordering::Relaxed);
        for parsed in self.parsed(file, &bytes, &known, &run.seen) {
            match parsed.and_then(|found| run.seen_once(found)) {
                Err(trouble) => run.report.problems.push(problem(source, trouble.line, trouble.message)),
                Ok(record) if known.remove(&record.key()) == Some(record.digest()) => {
                    run.report.unchanged += 1
                }
                Ok(record) => {
                    writer.put(&record, source)?;
                    run.report.put += 1;
                }
            }
        }
        self.progress.done.store(done + bytes.len(), Ordering::Relaxed);
        run.gone.extend(known.into_keys());
        let is_sound = run.report.problems.len() == before;
        writer.note_source(source, Some(if is_sound { self.digest(&bytes) } else { UNSOUND }))
    }

    fn parsed<'a>(
        &'a self,
        file: &'a Changed,
        bytes: &'a [u8],
        known: &HashMap<Key, u64>,
        seen: &Seen,
    ) -> Box<dyn Iterator<Item = Parsed> + 'a> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let message = "is not UTF-8 text: convert it".to_owned();
            return Box::new(std::iter::once(Err(Trouble { line: None, message })));
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Box::new(std::iter::empty());
        }
        let read = match walk::format_of(&file.path) {
            Some(walk::Format::Jsonl) => {
                return Box::new(jsonl::records(text, &file.source, self.defaults, &self.progress.done));
            }
            Some(walk::Format::Markdown) => markdown::records,
            Some(walk::Format::Text) => markdown::whole,
            None => return Box::new(std::iter::empty()),
        };
        let named = |name: &String| {
            read(Reading { path: &file.path, source: &file.source, name, defaults: self.defaults }, text)
        };
        Box::new(fitting(walk::names(&file.path).iter().map(named), known, seen).into_iter())
    }

    /// Of the file and of all else that decides what its records are.
    fn digest(&self, bytes: &[u8]) -> Digest {
        let mut hash = Sha256::new();
        for part in [
            FORMAT,
            self.defaults.namespace.as_str().as_bytes(),
            self.defaults.owner.as_deref().unwrap_or("").as_bytes(),
        ] {
            hash.update(part);
            hash.update([0]);
        }
        hash.update(bytes);
        hash.finalize().into()
    }

    /// A path as it is noted: relative where it is below the base.
    fn name_of(&self, path: &Path) -> String {
        let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let path = whole(path);
        let base = if self.base.as_os_str().is_empty() { Path::new(".") } else { self.base };
        path.strip_prefix(whole(base)).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

/// Where each id is: the number of the file, and the line if the file was read.
type Seen = HashMap<Key, (usize, Option<usize>)>;

#[derive(Default)]
struct Run {
    report: Report,
    /// The files so far.
    names: Vec<String>,
    /// Files that are as they were, until their ids are taken.
    others: Vec<String>,
    seen: Seen,
    /// What is no longer where it was.
    gone: Vec<Key>,
}

impl Run {
    fn take_ids_of_others(&mut self, store: &dyn Backend) -> Result<()> {
        for source in std::mem::take(&mut self.others) {
            let number = self.names.len();
            self.seen.extend(store.of_source(&source)?.iter().map(|known| (known.key, (number, None))));
            self.names.push(source);
        }
        Ok(())
    }

    /// The record, unless its id was seen before.
    fn seen_once(&mut self, (line, record): (usize, Record)) -> std::result::Result<Record, Trouble> {
        match self.seen.entry(record.key()) {
            Entry::Vacant(new) => {
                new.insert((self.names.len() - 1, Some(line)));
                Ok(record)
            }
            Entry::Occupied(other) => {
                let (file, at) = other.get();
                let at = at.map(|line| format!(":{line}")).unwrap_or_default();
                let place = format!("{}{at}", self.names[*file]);
                let message = format!("`{}` is also at {place}: an id is given once", record.id);
                Err(Trouble { line: Some(line), message })
            }
        }
    }
}

/// Of a file's records under several names: those with the ids that it has already, or else the first whose ids are free.
fn fitting(
    readings: impl Iterator<Item = Vec<Parsed>>,
    known: &HashMap<Key, u64>,
    seen: &Seen,
) -> Vec<Parsed> {
    let mut best: Option<(bool, Vec<Parsed>)> = None;
    for reading in readings {
        let keys: Vec<Key> = reading.iter().flatten().map(|(_, record)| record.key()).collect();
        let is_free = !keys.iter().any(|key| seen.contains_key(key));
        if is_free && (known.is_empty() || keys.iter().any(|key| known.contains_key(key))) {
            return reading;
        }
        match &best {
            Some((had_free, _)) if *had_free || !is_free => {}
            _ => best = Some((is_free, reading)),
        }
    }
    best.map(|(_, reading)| reading).unwrap_or_default()
}

fn unreadable(source: &str, error: &std::io::Error) -> Problem {
    problem(source, None, format!("cannot be read: {error}"))
}

fn problem(file: &str, line: Option<usize>, message: String) -> Problem {
    Problem { file: file.to_owned(), line, message }
}
