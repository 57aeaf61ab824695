//! docs/reference/diagnostics.md and the sources name the same codes: none undocumented, none invented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::support::repository;

/// The text before a code. All diagnostics are created by one of these.
const CONSTRUCTORS: [&str; 12] = [
    "Problem::at_key(",
    "Problem::at_value(",
    "DiagnosticDraft::error(",
    "DiagnosticDraft::json(",
    "error(",
    "report.add(",
    "self.add(",
    "refuse(",
    "reject(",
    "diagnostic(",
    "let code = ",
    ".code == ",
];
/// The first word of every code.
const AREAS: [&str; 24] = [
    "allow",
    "artifact",
    "cel",
    "clamp",
    "default",
    "dir",
    "doc",
    "example",
    "field",
    "file",
    "handler",
    "hidden",
    "json",
    "no",
    "parameters",
    "preview",
    "retrieval",
    "schema",
    "summary",
    "symlink",
    "timeout",
    "tool",
    "tools",
    "views",
];
/// Kebab-case literals in the sources that begin like a code and are not codes.
const NO_CODES: [&str; 5] =
    ["json-pointer", "json-pointer-uri-fragment", "date-time", "find-note", "handler-import"];

#[test]
fn every_code_is_documented() {
    let (written, documented) = (codes_of_sources(), documented());
    let undocumented: Vec<_> = written.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&written).collect();
    assert!(undocumented.is_empty(), "not in docs/reference/diagnostics.md: {undocumented:?}");
    assert!(invented.is_empty(), "only in docs/reference/diagnostics.md: {invented:?}");
}

#[test]
fn every_literal_that_looks_like_a_code_is_used_by_a_known_constructor() {
    let made = codes_of_sources();
    let mut unknown = BTreeSet::new();
    for text in sources() {
        for (_, literal) in kebab_literals(&text) {
            let area = literal.split('-').next().unwrap_or_default();
            if AREAS.contains(&area) && !made.contains(literal) && !NO_CODES.contains(&literal) {
                unknown.insert(literal.to_owned());
            }
        }
    }
    assert!(unknown.is_empty(), "add the constructor of these codes to CONSTRUCTORS: {unknown:?}");
}

#[test]
fn every_code_is_documented_once() {
    let mut codes: Vec<String> = rows();
    codes.sort();
    let all = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), all);
}

/// `"allow"` in `schema.json` accepts exactly the codes that the page calls warnings.
#[test]
fn every_warning_of_a_tool_can_be_allowed() {
    let page = fs::read_to_string(repository().join("docs/reference/diagnostics.md")).unwrap();
    let is_warning =
        |meaning: &str| meaning.starts_with("Warning.") || meaning.starts_with("Error or warning.");
    let code = |line: &str| {
        let (code, meaning) = line.strip_prefix("| `")?.split_once("` | ")?;
        is_warning(meaning).then(|| code.to_owned())
    };
    // The first two are not about one tool, or about the list itself.
    let mut documented: BTreeSet<String> = page.lines().filter_map(code).collect();
    assert!(documented.remove("no-tools") && documented.remove("allow-unused"));
    let source = fs::read_to_string(repository().join("crates/registry/src/check/allow.rs")).unwrap();
    let list = source.split_once("const WARNINGS").unwrap().1;
    let allowed: BTreeSet<String> =
        kebab_literals(list).into_iter().map(|(_, code)| code.to_owned()).collect();
    assert_eq!(allowed, documented);
}

fn documented() -> BTreeSet<String> {
    rows().into_iter().collect()
}

fn rows() -> Vec<String> {
    let page = fs::read_to_string(repository().join("docs/reference/diagnostics.md")).unwrap();
    let code = |line: &str| Some(line.strip_prefix("| `")?.split_once("` | ")?.0.to_owned());
    page.lines().filter_map(code).collect()
}

fn codes_of_sources() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for text in sources() {
        for (before, literal) in kebab_literals(&text) {
            let before = before.trim_end();
            if CONSTRUCTORS.iter().any(|constructor| before.ends_with(constructor.trim_end())) {
                codes.insert(literal.to_owned());
            }
        }
    }
    codes
}

/// Kebab-case string literals of two or more words, each with the text before it.
fn kebab_literals(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices('"') {
        let rest = &text[start + 1..];
        let end =
            rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')).unwrap_or(0);
        let literal = &rest[..end];
        if rest[end..].starts_with('"') && literal.trim_matches('-').contains('-') {
            found.push((&text[..start], literal));
        }
    }
    found
}

/// The sources without tests and comments.
fn sources() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["crates/registry/src", "crates/schema/src", "crates/cli/src"] {
        collect(&repository().join(folder), &mut texts);
    }
    texts
}

fn collect(dir: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            collect(&entry.path(), texts);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") {
            let text = fs::read_to_string(entry.path()).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            texts.push(lines.collect::<Vec<_>>().join("\n"));
        }
    }
}
