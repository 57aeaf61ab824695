//! Test support: problems as one line each.

/// Lints a schema and compares all problems, each as `code pointer Part: message [help]`.
pub fn check(schema: &str, expected: &[&str]) {
    let schema = serde_json::from_str(schema).unwrap();
    let found: Vec<String> = super::lint(&schema)
        .into_iter()
        .map(|problem| {
            let help = problem.help.unwrap_or_default();
            format!("{} {} {:?}: {} [{help}]", problem.code, problem.pointer, problem.part, problem.message)
        })
        .collect();
    assert_eq!(found, expected);
}
