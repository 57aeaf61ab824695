//! Every case that real Ajv decided: does the linter refuse exactly the schemas that Ajv refuses?

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::lint;
use crate::corpora::{corpus, fixtures};

/// Cases in which the linter differs on purpose, with the reason. None so far.
const DEVIATIONS: &[(&str, &str)] = &[];

const OWN_CASES: usize = 169;
const PUBLIC_CASES: usize = 2353;

#[test]
fn the_linter_refuses_what_ajv_refuses_among_our_own_cases() {
    assert_eq!(agree(&fixtures("ajv")), OWN_CASES);
}

#[test]
fn the_linter_refuses_what_ajv_refuses_and_nothing_else() {
    if let Some(folder) = corpus("ajv") {
        assert_eq!(agree(&folder), PUBLIC_CASES);
    }
}

fn agree(folder: &Path) -> usize {
    let mut wrong = Vec::new();
    let cases = cases(folder);
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let ajv_refuses = case["expect"]["compile"] == "error";
        let problems = lint(&case["schema"]);
        let deviates = ajv_refuses == problems.is_empty();
        let allowed = DEVIATIONS.iter().any(|(deviation, _)| *deviation == id);
        if deviates != allowed {
            wrong.push(format!(
                "{id} ({}): Ajv says {}, the linter {problems:#?}\n  schema: {}",
                case["title"], case["expect"]["compileError"], case["schema"]
            ));
        }
        for problem in &problems {
            assert!(case["schema"].pointer(&problem.pointer).is_some(), "{id}: {problem:?} names nothing");
            assert!(problem.code.starts_with("schema-"), "{id}: {problem:?}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    cases.len()
}

fn cases(folder: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let json = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    json.flat_map(|file| serde_json::from_slice::<Vec<Value>>(&std::fs::read(file).unwrap()).unwrap())
        .collect()
}
