//! Rules about the project itself: sizes, headers, and that the architecture page names only what exists.

use std::fs;
use std::path::{Path, PathBuf};

/// Tables and other files that are long for a reason.
const LONG: &[(&str, &str)] = &[];

const MOST_LINES: usize = 500;

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
        assert!(lines <= MOST_LINES || excused, "{name} has {lines} lines: split it by noun");
    }
}

#[test]
fn every_file_says_what_it_owns() {
    for (name, text) in rust_files() {
        if !name.ends_with("_tests.rs") {
            assert!(text.starts_with("//! "), "{name} must open with a line of `//!`");
        }
    }
}

#[test]
fn nothing_is_left_unfinished() {
    // Spelled apart, so that this file does not find itself.
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
    assert!(text.lines().count() <= 120, "ARCHITECTURE.md is to be two pages");
}
