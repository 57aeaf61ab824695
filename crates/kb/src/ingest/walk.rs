//! Which files are ingested.

use std::fs;
use std::path::{Path, PathBuf};

use super::raw::slug;
use super::{Problem, problem};

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Jsonl,
    Markdown,
    Text,
}

/// By the end of its name.
pub fn format_of(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        "md" | "markdown" => Some(Format::Markdown),
        "txt" | "text" => Some(Format::Text),
        _ => None,
    }
}

/// The files that are named, and those below the directories that are, in the order of their names. What begins with a
/// dot is left out below directories, and so are links to directories.
pub fn files(paths: &[PathBuf], problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, &mut files, problems);
        } else if !path.exists() {
            problems.push(problem(
                &path.display().to_string(),
                None,
                "there is no such file or directory".to_owned(),
            ));
        } else if is_special(path) {
            problems.push(problem(&path.display().to_string(), None, "is no file with a text".to_owned()));
        } else if format_of(path).is_none() {
            let message = "is of no known kind: .jsonl, .ndjson, .md, .markdown and .txt are read";
            problems.push(problem(&path.display().to_string(), None, message.to_owned()));
        } else {
            files.push(path.clone());
        }
    }
    let mut seen = std::collections::HashSet::new();
    files.retain(|file| seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())));
    files
}

fn below(dir: &Path, files: &mut Vec<PathBuf>, problems: &mut Vec<Problem>) {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            return problems.push(problem(
                &dir.display().to_string(),
                None,
                format!("cannot be listed: {error}"),
            ));
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_link = path.is_symlink();
        if is_hidden || is_link && path.is_dir() {
            continue;
        }
        if path.is_dir() {
            below(&path, files, problems);
        } else if format_of(&path).is_some() && !is_special(&path) {
            files.push(path);
        }
    }
}

/// A pipe, a socket or a device: whoever reads it may wait for ever.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// A README or index is named for its directory.
pub fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_of_directory = ["readme", "index"].contains(&stem.to_ascii_lowercase().as_str());
    match file.parent().and_then(Path::file_name) {
        Some(directory) if is_of_directory => directory.to_string_lossy().into_owned(),
        _ => stem,
    }
}

/// What a file may be called in ids: its name, and then with more and more of the directories above it.
pub fn names(file: &Path) -> Vec<String> {
    let whole = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let name = name_of(&whole);
    let mut names = vec![slug(&name)];
    for above in whole.ancestors().skip(1).filter_map(Path::file_name) {
        let above = slug(&above.to_string_lossy());
        // A README has the name of its directory already.
        if names.len() > 1 || above != names[0] {
            names.push(format!("{above}_{}", names[names.len() - 1]));
        }
    }
    names
}
