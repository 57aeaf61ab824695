//! Every case that real Ajv decided: the linter refuses exactly the schemas that Ajv refuses.

use std::path::Path;

use toolwright_schema::lint;

use crate::ajv_cases::{own_ajv_cases, read_cases};
use crate::corpora::corpus;

/// Cases in which the linter differs on purpose, with the reason. None so far.
const DEVIATIONS: &[(&str, &str)] = &[];

const OWN_CASES: usize = 169;
const PUBLIC_CASES: usize = 2353;

#[test]
fn the_linter_refuses_what_ajv_refuses_among_our_own_cases() {
    assert_eq!(count_agreeing(&own_ajv_cases()), OWN_CASES);
}

#[test]
fn the_linter_refuses_what_ajv_refuses_and_nothing_else() {
    if let Some(directory) = corpus("ajv") {
        assert_eq!(count_agreeing(&directory), PUBLIC_CASES);
    }
}

fn count_agreeing(directory: &Path) -> usize {
    let mut wrong = Vec::new();
    let cases = read_cases(directory);
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
            assert!(
                case["schema"].pointer(&problem.pointer).is_some(),
                "{id}: {problem:?} points to nothing"
            );
            assert!(problem.code.starts_with("schema-"), "{id}: {problem:?}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    cases.len()
}
