//! How records come in: files are found, read, compared with what is kept, and put in one commit.
//!
//! - What has not changed costs nothing: a file is known by its digest, a record of a changed file by its own.
//! - What is gone from a file, and files that are gone from a directory, are removed.
//! - A line or file that cannot be read is reported with its place; the others are ingested.

mod front;
mod jsonl;
mod markdown;
mod raw;
mod walk;

use std::collections::{HashMap, HashSet};
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

/// How far it is; read by whoever shows it.
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

/// A record and the line at which it begins.
type Found = (usize, Record);

impl Ingest<'_> {
    /// Brings the store to what the paths hold now. One commit, at the end.
    pub fn run(&self, store: &dyn Backend, paths: &[PathBuf]) -> Result<Report> {
        let mut writer = store.write()?;
        let mut run = Run { report: Report::default(), seen: HashMap::new(), gone: Vec::new() };
        let files = walk::files(paths, &mut run.report.problems);
        let noted = store.sources()?;
        self.progress.total.store(files.len(), Ordering::Relaxed);
        let mut present = HashSet::new();
        for file in &files {
            let source = self.name_of(file);
            self.one(store, writer.as_mut(), file, &source, noted.get(&source), &mut run)?;
            present.insert(source);
            self.progress.done.fetch_add(1, Ordering::Relaxed);
        }
        let directories: Vec<String> =
            paths.iter().filter(|path| path.is_dir()).map(|path| self.name_of(path)).collect();
        let is_below = |source: &str| {
            directories.iter().any(|dir| {
                dir.is_empty() || source.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
            })
        };
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

    /// One file.
    fn one(
        &self,
        store: &dyn Backend,
        writer: &mut dyn Write,
        file: &Path,
        source: &str,
        noted: Option<&Digest>,
        run: &mut Run,
    ) -> Result<()> {
        run.report.files += 1;
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                run.report.problems.push(problem(source, None, format!("cannot be read: {error}")));
                return Ok(());
            }
        };
        let digest = self.digest(&bytes);
        if noted == Some(&digest) {
            run.report.unchanged_files += 1;
            return Ok(());
        }
        let before = run.report.problems.len();
        let found = self.records(file, source, bytes, &mut run.report.problems);
        let known = store.of_source(source)?.into_iter().map(|known| (known.key, known.digest));
        let mut known: HashMap<Key, u64> = known.collect();
        for (line, record) in found {
            let key = record.key();
            if let Some((other, at)) = run.seen.get(&key) {
                let message = format!("`{}` is also at {other}:{at}: an id is given once", record.id);
                run.report.problems.push(problem(source, Some(line), message));
                continue;
            }
            run.seen.insert(key, (source.to_owned(), line));
            if known.remove(&key) == Some(record.digest()) {
                run.report.unchanged += 1;
            } else {
                writer.put(&record, source)?;
                run.report.put += 1;
            }
        }
        run.gone.extend(known.into_keys());
        let is_sound = run.report.problems.len() == before;
        writer.note_source(source, Some(if is_sound { digest } else { UNSOUND }))
    }

    fn records(&self, file: &Path, source: &str, bytes: Vec<u8>, problems: &mut Vec<Problem>) -> Vec<Found> {
        let Ok(text) = String::from_utf8(bytes) else {
            problems.push(problem(source, None, "is not UTF-8 text: convert it".to_owned()));
            return Vec::new();
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut told = |line: Option<usize>, message: String| problems.push(problem(source, line, message));
        match walk::format_of(file) {
            Some(walk::Format::Jsonl) => jsonl::records(text, source, self.defaults, &mut told),
            Some(walk::Format::Markdown) => markdown::records(file, text, source, self.defaults, &mut told),
            Some(walk::Format::Text) => markdown::whole(file, text, source, self.defaults, &mut told),
            None => Vec::new(),
        }
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
        path.strip_prefix(whole(self.base)).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

struct Run {
    report: Report,
    /// Where each id was seen in this run.
    seen: HashMap<Key, (String, usize)>,
    /// What is no longer where it was.
    gone: Vec<Key>,
}

fn problem(file: &str, line: Option<usize>, message: String) -> Problem {
    Problem { file: file.to_owned(), line, message }
}
