//! Rules about the repository: sizes of files, module comments, paths and links in the documents.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may be longer, with the reason.
const LONG: &[(&str, &str)] = &[];

const MAX_LINES: usize = 500;
const MAX_DOCUMENT_COLUMNS: usize = 120;
const MAX_ARCHITECTURE_BYTES: usize = 24 * 1024;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(below: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn rust_files() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    files(&root, "rs", &mut found);
    found.sort();
    assert!(found.len() > 30, "only {} Rust files found", found.len());
    let name = |path: &Path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn no_file_is_too_long() {
    for (name, text) in rust_files() {
        let lines = text.lines().count();
        let excused = LONG.iter().any(|(long, _)| *long == name);
        assert!(lines <= MAX_LINES || excused, "{name} has {lines} lines: split it by noun");
    }
}

#[test]
fn every_file_begins_with_a_module_comment() {
    for (name, text) in rust_files() {
        if !name.ends_with("_tests.rs") {
            assert!(text.starts_with("//! "), "{name} must open with a line of `//!`");
        }
    }
}

#[test]
fn no_file_contains_an_unfinished_marker() {
    // Split, so that this file does not match.
    let marks = [["to", "do!("], ["unimple", "mented!("], ["#[ig", "nore"], ["FIX", "ME"]]
        .map(|parts| parts.concat());
    for (name, text) in rust_files() {
        for mark in &marks {
            assert!(!text.contains(mark), "{name} holds `{mark}`");
        }
    }
}

#[test]
fn every_path_in_the_documents_exists() {
    let root = root();
    for document in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let mut checked = 0;
        for code in text.split('`').skip(1).step_by(2) {
            let is_path =
                ["crates/", "tools/", "docs/", "tests/", "benches/", "prompts/", "scripts/", ".ci/"]
                    .iter()
                    .any(|start| code.starts_with(start));
            if is_path && !code.contains(['<', '*', ' ', '{']) && !code.ends_with("tool_registry.json") {
                assert!(root.join(code).exists(), "{document} names `{code}`, which is not there");
                checked += 1;
            }
        }
        assert!(checked > 0, "{document} names no path at all");
    }
}

#[test]
fn the_architecture_page_stays_short() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.len() <= MAX_ARCHITECTURE_BYTES, "ARCHITECTURE.md has {} bytes", text.len());
}

/// The pages for readers, by path below the repository.
fn documents() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)).to_vec();
    files(&root.join("docs"), "md", &mut found);
    assert!(found.len() > 30, "only {} documents found", found.len());
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_link_in_the_documents_leads_to_a_file_and_heading() {
    for (path, text) in documents() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if link.starts_with("http") {
                continue;
            }
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let linked = fs::read(&target)
                .unwrap_or_else(|error| panic!("{} links to {link}: {error}", path.display()));
            // Pictures are no text.
            let linked = String::from_utf8_lossy(&linked);
            let exists =
                heading.is_empty() || linked.lines().any(|line| anchor(line) == Some(heading.into()));
            assert!(exists, "{} links to {link}, which has no such heading", path.display());
        }
    }
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(line: &str) -> Option<String> {
    let text = line.strip_prefix('#')?.trim_start_matches('#').trim().to_lowercase();
    let is_part = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    Some(text.chars().filter(is_part).map(|c| if c == ' ' { '-' } else { c }).collect())
}

#[test]
fn lines_of_the_documents_fit_the_page() {
    for (path, text) in documents() {
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let fits = line.chars().count() <= MAX_DOCUMENT_COLUMNS;
            let place = format!("{}:{}", path.display(), index + 1);
            assert!(fits || is_code || line.starts_with('|'), "{place} has more than 120 columns");
        }
    }
}
