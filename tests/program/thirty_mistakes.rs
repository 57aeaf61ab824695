//! A toolset with more than thirty kinds of mistakes: one run reports all of them with their positions.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use super::support::{Run, assert_message_names_field, command_in, repository, run};

const FOLDER: &str = "tests/fixtures/thirty-mistakes";

fn check(args: &[&str]) -> Run {
    run(command_in(&repository(), &[&["check", FOLDER], args].concat())).expect_code(1)
}

fn diagnostics() -> Vec<Value> {
    let report = check(&["--format", "json"]).expect_names_in_messages().json();
    assert_eq!(report["ok"], false);
    assert_eq!(report["version"], Value::Null);
    assert_eq!(report["tools"], 15);
    let mut diagnostics = report["diagnostics"].as_array().unwrap().clone();
    diagnostics.sort_by_key(|found| {
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        let position = (found["line"].as_u64(), found["column"].as_u64());
        (text("tool"), text("file"), position, text("code"), text("message"))
    });
    diagnostics
}

#[test]
fn all_mistakes_are_reported_in_one_run_with_their_positions() {
    let mut list = String::new();
    for found in diagnostics() {
        let text = |name: &str| found[name].as_str().unwrap_or("-").to_owned();
        let place = format!("{}/{}:{}:{}", text("tool"), text("file"), found["line"], found["column"]);
        writeln!(list, "{place} {} {}", text("severity"), text("code")).unwrap();
        writeln!(list, "    at:      {}", offending_text(&found)).unwrap();
        writeln!(list, "    message: {}", text("message")).unwrap();
        writeln!(list, "    help:    {}", text("help")).unwrap();
    }
    insta::assert_snapshot!("all_mistakes", list);
}

#[test]
fn every_message_about_a_schema_names_its_field() {
    let found: Vec<Value> =
        diagnostics().into_iter().filter(|found| found["file"] == "schema.json").collect();
    for diagnostic in &found {
        let tool = repository().join(FOLDER).join(diagnostic["tool"].as_str().unwrap());
        assert_message_names_field(diagnostic, &fs::read_to_string(tool.join("schema.json")).unwrap());
    }
    assert!(found.len() > 30, "only {} messages", found.len());
}

/// The text at the position, so that a reader of the snapshot can check it.
fn offending_text(found: &Value) -> String {
    let path = repository().join(FOLDER).join(found["tool"].as_str().unwrap());
    let Ok(text) = fs::read_to_string(path.join(found["file"].as_str().unwrap())) else {
        return "(no text)".to_owned();
    };
    let number = |name: &str| usize::try_from(found[name].as_u64().unwrap()).unwrap();
    let line = text.lines().nth(number("line") - 1).unwrap_or_default();
    line.chars().skip(number("column") - 1).take(24).collect()
}

#[test]
fn the_folder_has_at_least_thirty_different_kinds_of_mistakes() {
    let mut codes: Vec<String> =
        diagnostics().iter().map(|found| found["code"].as_str().unwrap().to_owned()).collect();
    codes.sort();
    codes.dedup();
    assert!(codes.len() >= 30, "{codes:?}");
}

#[test]
fn the_offending_text_is_underlined_without_colours_in_a_pipe() {
    let run = check(&[]);
    assert_eq!(run.stdout, "");
    assert!(!run.stderr.contains('\x1b'));
    insta::assert_snapshot!("for_people", run.stderr);
}

#[test]
fn the_report_is_ordered_by_tool_file_and_position() {
    let report = check(&["--format", "json"]).expect_names_in_messages().json();
    let places = report["diagnostics"].as_array().unwrap().iter().map(|found| {
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        (text("tool"), text("file"), found["line"].as_u64(), found["column"].as_u64())
    });
    assert!(places.clone().is_sorted(), "{:#?}", places.collect::<Vec<_>>());
}

#[test]
fn two_runs_report_the_same() {
    assert_eq!(check(&["--format", "json"]).stdout, check(&["--format", "json"]).stdout);
}

#[test]
fn check_writes_nothing() {
    check(&[]);
    let left = fs::read_dir(repository().join(FOLDER)).unwrap().flatten();
    assert_eq!(left.filter(|entry| !entry.path().is_dir()).count(), 0);
}
