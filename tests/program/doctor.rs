//! `toolwright doctor`: checks and suggested fixes.

use std::fs;

use serde_json::Value;

use super::support::{Project, models, run};

fn status<'a>(report: &'a Value, check: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|row| row["check"] == check).unwrap_or_else(|| panic!("no {check} in {report}"))
}

#[test]
fn a_new_project_misses_only_external_services() {
    let project = Project::empty();
    project.run(&["init", "agent"]).expect_code(0);
    let mut command = project.command(&["doctor", "--format", "json"]);
    command.current_dir(project.dir().join("agent"));
    let report = run(command).expect_code(0).json();
    for check in ["configuration", "tools", "prompts", "store", "imports", "calendar"] {
        assert_eq!(status(&report, check)["status"], "ok", "{report}");
    }
    assert_eq!(status(&report, "images")["status"], "missing");
    let embedder = status(&report, "embedder");
    assert_eq!(embedder["status"], "missing");
    assert_eq!(embedder["help"], "run `toolwright kb model install`");
    assert!(!project.dir().join("agent/.toolwright").exists(), "doctor must not create files");
}

#[test]
fn the_installed_model_embeds_a_text() {
    let project = Project::with(&["one"]);
    let mut command = project.command(&["doctor", "--format", "json"]);
    command.env("TOOLWRIGHT_MODELS", models());
    let report = run(command).expect_code(0).json();
    let embedder = status(&report, "embedder");
    assert_eq!(embedder["status"], "ok", "{report}");
    assert!(embedder["message"].as_str().unwrap().contains("384 dimensions"), "{report}");
}

#[test]
fn a_broken_check_suggests_a_fix() {
    let project = Project::with(&["one"]);
    project.edit("one/schema.json", "\"object\"", "\"objekt\"");
    fs::create_dir(project.dir().join(".toolwright")).unwrap();
    fs::write(
        project.dir().join(".toolwright/state.db"),
        "no database, and longer than its head would be".repeat(9),
    )
    .unwrap();
    let text = "[kb.embedder]\nurl = \"http://127.0.0.1:9\"\nmodel = \"m\"\nkey_env = \"NO_SUCH_KEY\"\n\
        [calendar]\nurl = \"http://127.0.0.1:9/studio/\"\norganizer = \"mira@example.com\"\n";
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    let report = project.run(&["doctor", "--format", "json"]).expect_code(1).json();
    for (check, help) in [
        ("tools", "toolwright check"),
        ("store", "[store] url"),
        ("embedder", "set NO_SUCH_KEY"),
        ("calendar", "fix `[calendar]`"),
    ] {
        assert_eq!(status(&report, check)["status"], "broken", "{report}");
        assert!(status(&report, check)["help"].as_str().unwrap().contains(help), "{report}");
    }
    let lines = project.run(&["doctor"]).expect_code(1).stdout;
    assert!(lines.contains("broken") && lines.contains("help: set NO_SUCH_KEY"), "{lines}");
}

#[test]
fn an_invalid_configuration_is_the_only_check() {
    let project = Project::with(&["one"]);
    fs::write(project.dir().join("toolwright.toml"), "[kb]\nmodel = 1\n").unwrap();
    let report = project.run(&["doctor", "--format", "json"]).expect_code(1).json();
    assert_eq!(report["checks"].as_array().unwrap().len(), 1);
    assert_eq!(status(&report, "configuration")["status"], "broken");
}
