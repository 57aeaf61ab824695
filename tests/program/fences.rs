//! Checks that keep ARCHITECTURE.md true: the dependencies of the crates, the files that touch the environment, and the
//! table that says where a change goes. The proofs of the security page and of the promises are checked too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The rows of the table below a heading, as cells.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section =
        page.split(&format!("## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(rows.len() > 5, "the table below `{heading}` has only {} rows", rows.len());
    rows
}

/// The texts in backquotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The Toolwright crates that a manifest names under `[dependencies]`.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let names = table["dependencies"].as_table().unwrap().keys();
    names.filter_map(|name| name.strip_prefix("toolwright-").map(str::to_owned)).collect()
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_page_says() {
    let rows = table(&architecture(), "Crates");
    let mut documented = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let name = quoted(&row[0])[0].trim_start_matches("crates/").to_owned();
        documented.insert(name, (index, quoted(&row[2]).into_iter().collect::<BTreeSet<_>>()));
    }
    let mut found = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (index, uses) =
            documented.get(&name).unwrap_or_else(|| panic!("crates/{name} is not on the page"));
        assert_eq!(&dependencies(&path.join("Cargo.toml")), uses, "dependencies of crates/{name}");
        for used in uses {
            let (below, _) = &documented[used];
            assert!(below > index, "crates/{name} uses {used}, which must stand below it in the table");
        }
        found += 1;
    }
    assert_eq!(found, documented.len(), "the page names crates that do not exist");
}

/// The library files that may read the environment, arguments, directories or the wall clock, or start processes; each
/// says why beside its exception.
const OUTSIDE_WORLD: &[&str] = &[
    "crates/calendar/src/calendar.rs",
    "crates/capabilities/src/error.rs",
    "crates/embed/src/support.rs",
    "crates/engine/src/lib.rs",
    "crates/engine/src/spawner.rs",
    "crates/engine/src/worker/cpu_clock.rs",
    "crates/engine/src/worker/sandbox_tests.rs",
    "crates/imports/src/transport.rs",
    "crates/orchestrator/src/clock.rs",
    "crates/orchestrator/src/engine/http.rs",
    "crates/registry/src/artifact.rs",
    "crates/registry/src/corpora.rs",
    "crates/registry/src/fingerprint.rs",
    "crates/server/src/access_log.rs",
    "crates/server/src/auth/mod.rs",
    "crates/server/src/otlp.rs",
];

/// Files with a `clippy::disallowed_methods` exception, below the crates' `src`.
fn files_with_exceptions(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_with_exceptions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("clippy::disallowed_methods") {
                found.insert(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            }
        }
    }
}

#[test]
fn only_the_named_files_touch_environment_clock_or_processes() {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("cli") {
            files_with_exceptions(&path.join("src"), &mut found);
        }
    }
    let named: BTreeSet<String> = OUTSIDE_WORLD.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(found, named, "library files that read the environment or the clock, or start processes");
}

/// A row names folders (ending in `/`), files, and in parentheses after a file the item to extend.
#[test]
fn every_place_where_a_change_goes_exists() {
    for row in table(&architecture(), "Where a change goes") {
        let mut file = None;
        for place in row[1..].iter().flat_map(|cell| quoted(cell)) {
            let path = root().join(place.split('<').next().unwrap());
            if place.contains('/') {
                assert!(path.exists(), "to add {}: `{place}` does not exist", row[0]);
                file = path.is_file().then_some(path);
            } else if let Some(file) = &file {
                let text = fs::read_to_string(file).unwrap();
                assert!(text.contains(&place), "to add {}: {} has no `{place}`", row[0], file.display());
            }
        }
    }
}

/// The last cell of a promise names files or folders, and in parentheses after one of them the tests in it.
#[test]
fn every_proof_on_the_security_page_exists() {
    let page = fs::read_to_string(root().join("docs/explanation/security.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.matches('|').count() == 4);
    let proofs: usize =
        rows.map(|row| check_proofs(row, row.trim_end_matches('|').rsplit('|').next().unwrap())).sum();
    assert!(proofs > 20, "the page names only {proofs} tests");
}

/// Each row of the promises has a number, and in its third cell the proofs.
#[test]
fn every_proof_of_the_promises_exists() {
    let page = fs::read_to_string(root().join("docs/reference/promises.md")).unwrap();
    let (mut numbers, mut proofs) = (Vec::new(), 0);
    for row in page.lines().filter(|line| line.starts_with("| ") && line.matches('|').count() == 5) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if let Ok(number) = cells[0].parse::<usize>() {
            numbers.push(number);
            proofs += check_proofs(row, cells[2]);
        }
    }
    assert_eq!(numbers, (1..=33).collect::<Vec<_>>());
    assert!(proofs > 60, "the page names only {proofs} tests");
}

/// A cell names files or folders, commands that begin with a script, and after a file the tests in it. Returns the
/// number of tests.
fn check_proofs(row: &str, cell: &str) -> usize {
    let (mut proofs, mut text) = (0, String::new());
    for proof in quoted(cell) {
        let place = proof.split(' ').next().unwrap();
        if place.contains('/') {
            let path = root().join(place);
            assert!(path.exists(), "{row}: `{place}` does not exist");
            text = read_all(&path);
        } else if !place.contains('.') {
            assert!(text.contains(&format!("fn {place}(")), "{row}: there is no test `{place}`");
            proofs += 1;
        }
    }
    proofs
}

/// The text of a file, or of all files of a folder.
fn read_all(path: &Path) -> String {
    if path.is_file() {
        return fs::read_to_string(path).unwrap();
    }
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.is_file()).map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Folders whose every file must be registered in one table or match: a file that nobody names is dead.
const REGISTERED: &[(&str, &str)] = &[
    ("crates/orchestrator/src/gate", "crates/orchestrator/src/gate/mod.rs"),
    ("crates/providers/src", "crates/providers/src/lib.rs"),
    ("crates/cli/src/command", "crates/cli/src/command/mod.rs"),
];

#[test]
fn every_file_of_an_extensible_folder_is_registered() {
    for (folder, table) in REGISTERED {
        let registered = fs::read_to_string(root().join(table)).unwrap();
        let mut files = 0;
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.is_file() && !["mod", "lib"].contains(&name.as_str()) && !name.ends_with("_tests") {
                assert!(registered.contains(&format!("mod {name};")), "{table} does not name {name}");
                files += 1;
            }
        }
        assert!(files > 3, "{folder} has only {files} files");
    }
}
