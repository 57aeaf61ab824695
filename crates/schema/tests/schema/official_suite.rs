//! The official test suite for draft 2020-12, with formats asserted.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwright_schema::Validator;

/// The only deviations: `format.json` requires formats to be annotations, `optional/format` requires
/// them to be asserted, and no schema says which applies. Toolwright asserts them, as Ajv does.
const ASSERTED: [&str; 19] = [
    "email",
    "idn-email",
    "regex",
    "ipv4",
    "ipv6",
    "idn-hostname",
    "hostname",
    "date",
    "date-time",
    "time",
    "json-pointer",
    "relative-json-pointer",
    "iri",
    "iri-reference",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
    "duration",
];

fn deviations() -> Vec<String> {
    let name = |format: &&str| {
        format!("format / {format} format / invalid {format} string is only an annotation by default")
    };
    ASSERTED.iter().map(name).collect()
}

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
            !["draft3", "draft4", "draft6", "draft7", "v1"].iter().any(|old| name.contains(old))
        })
        .collect()
}

/// The decision that the suite wants, and the one that was made.
struct Outcome {
    id: String,
    wanted: bool,
    found: Result<bool, String>,
}

fn outcomes(suite: &Path) -> Vec<Outcome> {
    let remotes = remotes(suite);
    let others: Vec<(&str, &Value)> = remotes.iter().map(|(uri, value)| (uri.as_str(), value)).collect();
    let folder = suite.join("tests/draft2020-12");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut outcomes = Vec::new();
    for file in &found {
        let name = file.strip_prefix(&folder).unwrap().with_extension("").display().to_string();
        for group in read(file).as_array().unwrap() {
            let validator = Validator::compile_with(&group["schema"], &others);
            for test in group["tests"].as_array().unwrap() {
                let text = |value: &Value| value["description"].as_str().unwrap().to_owned();
                outcomes.push(Outcome {
                    id: format!("{name} / {} / {}", text(group), text(test)),
                    wanted: test["valid"].as_bool().unwrap(),
                    found: validator
                        .as_ref()
                        .map(|validator| decide(validator, &test["data"]))
                        .map_err(ToString::to_string),
                });
            }
        }
    }
    outcomes
}

/// `is_valid` and `validate` must agree, unless a default was filled in.
fn decide(validator: &Validator, data: &Value) -> bool {
    let valid = validator.is_valid(data);
    let mut filled = data.clone();
    let outcome = validator.validate(&mut filled);
    assert!(filled != *data || outcome.is_ok() == valid, "{data}: {valid} and {outcome:?}");
    valid
}

#[test]
fn the_official_suite_passes() {
    let Some(suite) = crate::corpora::corpus("json-schema-test-suite") else { return };
    let outcomes = outcomes(&suite);
    let deviations = deviations();
    let mut problems = Vec::new();
    for Outcome { id, wanted, found } in &outcomes {
        let allowed = deviations.contains(id);
        let right = found.as_ref() == Ok(wanted);
        if right == allowed {
            let hint = if right { "passes now: remove it from the list" } else { "" };
            problems.push(format!("{id}: {found:?} {hint}"));
        }
    }
    println!("{} tests, {} deviations", outcomes.len(), deviations.len());
    assert!(problems.is_empty(), "{} of {}\n{}", problems.len(), outcomes.len(), problems.join("\n"));
    assert_eq!(outcomes.len(), 2225, "the suite must have 2,225 tests");
}
