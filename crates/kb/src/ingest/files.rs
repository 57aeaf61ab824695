//! Finds the files to ingest, their format and their names.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Problem;
use super::record_input::slug;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Jsonl,
    Markdown,
    Text,
}

/// The format by the file's extension.
pub fn detect_format(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        "md" | "markdown" => Some(Format::Markdown),
        "txt" | "text" => Some(Format::Text),
        _ => None,
    }
}

/// The files among the paths and those below directories, sorted by name within each directory. Hidden files and links
/// to directories are skipped below directories.
pub fn find_files(paths: &[PathBuf], problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        let problem = if path.is_dir() {
            find_below(path, &mut files, problems);
            continue;
        } else if !path.exists() {
            "no such file or directory"
        } else if is_special(path) {
            "not a regular file"
        } else if detect_format(path).is_none() {
            "unknown file type: use .jsonl, .ndjson, .md, .markdown or .txt"
        } else {
            files.push(path.clone());
            continue;
        };
        problems.push(Problem::new(path.display(), None, problem));
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())));
    files
}

fn find_below(dir: &Path, files: &mut Vec<PathBuf>, problems: &mut Vec<Problem>) {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            return problems.push(Problem::new(dir.display(), None, format!("cannot list it: {error}")));
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_dir = path.is_dir();
        if is_hidden || is_dir && path.is_symlink() {
            continue;
        }
        if is_dir {
            find_below(&path, files, problems);
        } else if detect_format(&path).is_some() && !is_special(&path) {
            files.push(path);
        }
    }
}

/// Whether it is a pipe, a socket or a device: reading one may block forever.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The file name without its extension; for a README or index, the name of its directory.
pub fn base_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_index = ["readme", "index"].contains(&stem.to_ascii_lowercase().as_str());
    match file.parent().and_then(Path::file_name) {
        Some(directory) if is_index => directory.to_string_lossy().into_owned(),
        _ => stem,
    }
}

/// The names that a file may have in ids: its own, then with more and more parent directories as a prefix.
pub fn candidate_names(file: &Path) -> Vec<String> {
    let absolute = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut names = vec![slug(&base_name(&absolute))];
    for directory in absolute.ancestors().skip(1).filter_map(Path::file_name) {
        let directory = slug(&directory.to_string_lossy());
        // A README already has the name of its directory.
        if names.len() > 1 || directory != names[0] {
            names.push(format!("{directory}_{}", names[names.len() - 1]));
        }
    }
    names
}
