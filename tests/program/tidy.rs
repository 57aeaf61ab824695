//! Rules about the repository: sizes of files and lines, names, module comments, paths and links in the documents.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that may be longer, with the reason.
const LONG: &[(&str, &str)] = &[];

const MAX_LINES: usize = 500;
const MAX_COLUMNS: usize = 120;
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

/// Comments, and code outside of tests. A line of code may be longer for the text in it.
#[test]
fn lines_of_code_fit_the_page() {
    let mut too_long = Vec::new();
    for (name, text) in rust_files() {
        let is_test = name.ends_with("_tests.rs") || name.contains("tests/");
        for (index, line) in text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let may_be_longer = !is_comment && (is_test || line.contains('"'));
            let columns = line.chars().count();
            if columns > MAX_COLUMNS && !may_be_longer {
                too_long.push(format!("{name}:{} has {columns} columns", index + 1));
            }
        }
    }
    assert!(too_long.is_empty(), "at most {MAX_COLUMNS} columns fit:\n{}", too_long.join("\n"));
}

/// A name such as `retry` leads to one file of a crate.
#[test]
fn file_names_are_unique_in_their_crate() {
    let mut first: HashMap<(String, String), String> = HashMap::new();
    let mut repeated = Vec::new();
    for (name, _) in rust_files() {
        let Some((krate, path)) = name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        let stem = Path::new(path).file_stem().unwrap().to_string_lossy().into_owned();
        if ["mod", "lib", "main"].contains(&stem.as_str()) || path.contains("/tests/") {
            continue;
        }
        if let Some(other) = first.insert((krate.to_owned(), stem), name.clone()) {
            repeated.push(format!("{name} and {other}"));
        }
    }
    assert!(repeated.is_empty(), "files with the same name in one crate:\n{}", repeated.join("\n"));
}

/// Names that do not say what they name. Types say what they hold, functions what they return or change.
const UNCLEAR_NAMES: &str = " Trip Travelled Passed Heard Asked Asking Asker Told Keeping Held Kept Post Present Side Back \
    Boarding Errand Scribe Soup Luck Wish Nobody Trouble Misfit Endless walk travel told shown of at no lost out_of_reach \
    doors luck side served Unstored unstored asked held ";

#[test]
fn no_item_or_file_has_an_unclear_name() {
    let is_unclear = |name: &str| !name.is_empty() && UNCLEAR_NAMES.contains(&format!(" {name} "));
    let mut unclear = Vec::new();
    for (file, text) in rust_files() {
        let stem = Path::new(&file).file_stem().unwrap().to_string_lossy().into_owned();
        if is_unclear(&stem) {
            unclear.push(file.clone());
        }
        let mut enums = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = variant(line, &mut enums).filter(|name| is_unclear(name)) {
                unclear.push(format!("{file}:{}: {name}", index + 1));
            }
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let items = words.windows(2).filter(|pair| ITEMS.contains(&pair[0]) && is_unclear(pair[1]));
            let is_code = !line.trim_start().starts_with("//") && !line.contains('"');
            unclear
                .extend(items.filter(|_| is_code).map(|pair| format!("{file}:{}: {}", index + 1, pair[1])));
        }
    }
    assert!(unclear.is_empty(), "names that say nothing:\n{}", unclear.join("\n"));
}

const ITEMS: [&str; 8] = ["const", "enum", "fn", "mod", "static", "struct", "trait", "type"];

/// The variant that a formatted line begins. `enums` has the indentation of the enums that the line is in.
fn variant<'a>(line: &'a str, enums: &mut Vec<usize>) -> Option<&'a str> {
    let code = line.trim_start();
    let indent = line.len() - code.len();
    if code.starts_with('}') && enums.last() == Some(&indent) {
        enums.pop();
    }
    let is_begun = ["enum ", "pub enum ", "pub(crate) enum ", "pub(super) enum "]
        .iter()
        .any(|begin| code.starts_with(begin));
    let place = *enums.last().unwrap_or(&usize::MAX);
    if is_begun && code.ends_with('{') {
        enums.push(indent);
    }
    let end = code.find(|c: char| !c.is_alphanumeric()).unwrap_or(code.len());
    (place != usize::MAX && indent == place + 4 && code.starts_with(|c: char| c.is_ascii_uppercase()))
        .then(|| &code[..end])
}

/// The modules of the console's pages and of the tests in a browser.
#[test]
fn no_item_or_file_of_a_script_has_an_unclear_name() {
    let root = root();
    let mut found = Vec::new();
    for extension in ["js", "mjs"] {
        files(&root, extension, &mut found);
    }
    assert!(found.len() > 20, "only {} scripts found", found.len());
    let is_unclear = |name: &str| !name.is_empty() && UNCLEAR_NAMES.contains(&format!(" {name} "));
    let mut unclear = Vec::new();
    for path in found {
        let name = path.strip_prefix(&root).unwrap().display();
        if is_unclear(&path.file_stem().unwrap().to_string_lossy()) {
            unclear.push(name.to_string());
        }
        for (index, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let parts: Vec<&str> =
                line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').collect();
            let is_code = !line.trim_start().starts_with(['/', '*']);
            // A constant is an item at the top of its file.
            let is_item = |word: &str| {
                ["class", "function"].contains(&word) || (word == "const" && !line.starts_with(' '))
            };
            let items = parts.windows(2).filter(|pair| is_code && is_item(pair[0]) && is_unclear(pair[1]));
            unclear.extend(items.map(|pair| format!("{name}:{}: {}", index + 1, pair[1])));
        }
    }
    assert!(unclear.is_empty(), "names that say nothing:\n{}", unclear.join("\n"));
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
    let mut too_long = Vec::new();
    for (path, text) in documents() {
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            if line.chars().count() > MAX_COLUMNS && !is_code && !line.starts_with('|') {
                too_long.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    assert!(too_long.is_empty(), "lines of more than {MAX_COLUMNS} columns:\n{}", too_long.join("\n"));
}
