//! The official test suite for draft 2020-12, with formats asserted.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwright_registry::schema::Validator;

/// Tests where Ajv decides otherwise and we follow Ajv, or which ask for what is not built in.
/// An entry covers every test whose name starts with it.
const DEVIATIONS: &[(&str, &str)] = &[
    ("format / ", "formats are asserted here, as Ajv does"),
    ("optional/cross-draft", "older dialects are read as 2020-12"),
    ("optional/format/", "ajv-formats decides otherwise, or does not know the format"),
    ("unevaluatedItems / unevaluatedItems depends on adjacent contains / contains passes, second", CONTAINS),
    ("unevaluatedItems / unevaluatedItems depends on multiple nested contains / 7 not", CONTAINS),
    (
        "unevaluatedItems / unevaluatedItems and contains interact to control item dependency relationship / only a's and c's",
        CONTAINS,
    ),
    ("unevaluatedItems / unevaluatedItems with minContains = 0 / all items", CONTAINS),
    ("unevaluatedItems / unevaluatedItems can see annotations from if without then", LONE_IF),
    ("unevaluatedProperties / unevaluatedProperties can see annotations from if without then", LONE_IF),
    (
        "vocabulary / schema that uses custom metaschema with with no validation vocabulary / no validation: invalid",
        "vocabularies cannot be switched off",
    ),
];

const CONTAINS: &str = "to Ajv, `contains` evaluates all items (same case in the Ajv corpus)";
const LONE_IF: &str = "Ajv ignores an `if` without `then` and `else`, and strict mode refuses it";

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "json") {
            found.push(entry);
        }
    }
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn remotes(suite: &Path) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let folder = suite.join("remotes");
    files(&folder, &mut found);
    let name = |file: &Path| file.strip_prefix(&folder).unwrap().display().to_string();
    found
        .iter()
        .map(|file| (format!("http://localhost:1234/{}", name(file)), read(file)))
        .filter(|(name, _)| {
            !["draft3", "draft4", "draft6", "draft7", "draft2019", "v1"].iter().any(|old| name.contains(old))
        })
        .collect()
}

#[test]
fn the_suite_passes() {
    let Some(suite) = super::corpus("json-schema-test-suite") else { return };
    let remotes = remotes(&suite);
    let others: Vec<(&str, &Value)> = remotes.iter().map(|(uri, value)| (uri.as_str(), value)).collect();
    let folder = suite.join("tests/draft2020-12");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let (mut total, mut passed, mut required, mut required_passed) = (0, 0, 0, 0);
    let mut problems = Vec::new();
    for file in &found {
        let name = file.strip_prefix(&folder).unwrap().with_extension("").display().to_string();
        for group in read(file).as_array().unwrap() {
            let validator = Validator::compile_with(&group["schema"], &others);
            for test in group["tests"].as_array().unwrap() {
                total += 1;
                let id = format!(
                    "{name} / {} / {}",
                    group["description"].as_str().unwrap(),
                    test["description"].as_str().unwrap()
                );
                let outcome = validator.as_ref().map(|validator| validator.is_valid(&test["data"]));
                let right = outcome.as_ref().ok() == test["valid"].as_bool().as_ref();
                let allowed = DEVIATIONS.iter().any(|(known, _)| id.starts_with(known));
                passed += usize::from(right);
                if !name.starts_with("optional") && name != "format" {
                    required += 1;
                    required_passed += usize::from(right);
                }
                if !right && !allowed {
                    problems.push(format!("{id}: {outcome:?} {}", test["data"]));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} of {total}\n{}", problems.len(), problems.join("\n"));
    // An entry above may cover many tests; the totals show when any of them changes its verdict.
    assert_eq!((total, passed), (2225, 2090));
    assert_eq!((required, required_passed), (1166, 1159));
}
