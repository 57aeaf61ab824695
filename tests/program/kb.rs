//! `toolwright kb` and the tools that read the knowledge base, on the demo studio.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{Project, repository};

/// The reference toolset with the demo studio as the source of the knowledge base.
pub fn studio() -> Project {
    let project = Project::reference();
    let demo = repository().join("demo/kb");
    fs::write(project.dir().join("toolwright.toml"), format!("[kb]\nsources = [{:?}]\n", demo.display()))
        .unwrap();
    project
}

pub fn called(project: &Project, args: &[&str]) -> Value {
    project.run(&[&["call"], args, &["--format", "json"]].concat()).expect_code(0).json()
}

pub fn ids(results: &Value) -> Vec<&str> {
    results.as_array().unwrap().iter().map(|result| result["id"].as_str().unwrap()).collect()
}

#[test]
fn the_first_search_finds_the_founder_in_text_and_in_voice() {
    let project = studio();
    let envelope = called(&project, &["kb_search", r#"{"query": "who founded the studio"}"#]);
    let first = &envelope["data"]["results"][0];
    assert_eq!((&first["id"], &first["title"]), (&json!("person:ines_halloran"), &json!("Ines Halloran")));
    assert!(first["snippet"].as_str().unwrap().contains("founded the studio in 2009"));
    assert_eq!(first["metadata"]["role"], "founder and creative director");
    assert_eq!(envelope["meta"]["retrieval"], "keyword");
    let spoken = called(
        &project,
        &["kb_search", r#"{"query": "who founded the studio", "top_k": 9}"#, "--mode", "voice"],
    );
    let found = ids(&spoken["data"]["results"]);
    assert_eq!((found[0], found.len() <= 3), ("person:ines_halloran", true), "{found:?}");
}

#[test]
fn filters_namespaces_and_ids_select_the_right_records() {
    let project = studio();
    let search = |args: Value| called(&project, &["kb_search", &args.to_string()])["data"]["results"].clone();
    let automation = search(
        json!({"query": "stage automation", "filters": {"type": "project", "tags": ["automation", "active"],
        "date_range": {"start": "2026-01-01T00:00:00Z"}}}),
    );
    assert_eq!(ids(&automation)[0], "project:stage_lift_refit");
    assert!(ids(&automation).iter().all(|id| id.starts_with("project:")));
    let own =
        search(json!({"query": "portfolio website", "namespace": "personal", "filters": {"type": "link"}}));
    assert_eq!(ids(&own), ["link:my_portfolio"]);
    let visit = search(json!({"query": "opening hours for visitors", "namespace": "public"}));
    assert_eq!(ids(&visit)[0], "doc:about#visiting_us");
    let other = project.run(&[
        "call",
        "kb_get",
        r#"{"ids": ["link:my_portfolio", "person:mira_okafor"]}"#,
        "--user",
        "eve",
        "--format",
        "json",
    ]);
    let got = other.expect_code(0).json();
    assert_eq!(ids(&got["data"]["records"]), ["person:mira_okafor"]);
    assert_eq!(got["data"]["not_found"], json!(["link:my_portfolio"]));
    let linkedin = called(&project, &["linkedin_lookup", r#"{"name": "Mira Okafor"}"#]);
    let expected = "https://www.linkedin.com/in/mira-okafor-example";
    assert_eq!(linkedin["data"]["matches"][0]["linkedin_url"], expected);
    assert_eq!(linkedin["data"]["matches"].as_array().unwrap().len(), 1);
    let stored = called(&project, &["linkedin_lookup", r#"{"name": "Yuki Tanaka"}"#]);
    assert_eq!(stored["data"]["matches"][0]["id"], "link:yuki_linkedin");
    let none = called(&project, &["linkedin_lookup", r#"{"name": "Arthur Pell"}"#]);
    assert_eq!(none["data"]["matches"], json!([]), "a profile must not be invented");
}

#[test]
fn the_commands_fill_search_and_empty_the_knowledge_base() {
    let project = Project::with(&["find-note"]);
    let demo = repository().join("demo/kb");
    let demo = demo.to_str().unwrap();
    let run = |args: &[&str]| project.run(&[&["kb"], args, &["--format", "json"]].concat());
    let added = run(&["add", demo]).expect_code(0).json();
    assert!(added["put"].as_u64().unwrap() >= 60, "{added}");
    let again = run(&["add", demo]).expect_code(0).json();
    assert_eq!((&again["put"], &again["unchanged_files"]), (&json!(0), &again["files"]));
    let stats = run(&["stats"]).expect_code(0).json();
    assert_eq!((&stats["records"], &stats["with_vector"]), (&added["put"], &json!(0)));
    for namespace in ["studio", "personal", "public"] {
        assert!(stats["by_namespace"][namespace].as_u64().unwrap() > 0);
    }
    for kind in ["project", "person", "process", "link", "doc"] {
        assert!(stats["by_type"][kind].as_u64().unwrap() > 0);
    }
    let found = run(&["search", "rigging inspection", "--top-k", "2"]).expect_code(0).json();
    assert_eq!(
        (ids(&found["results"])[0], &found["retrieval"]),
        ("doc:rigging_manual#inspection", &json!("keyword"))
    );
    assert!(found["query_time_ms"].is_u64());
    for query in ["zzzzqqq", "submarine warfare in 1942"] {
        assert_eq!(run(&["search", query]).expect_code(0).json()["results"], json!([]), "{query}");
    }
    let exported = run(&["export"]).expect_code(0).stdout;
    assert_eq!(exported.lines().count() as u64, added["put"].as_u64().unwrap());
    fs::write(project.dir().join("all.jsonl"), &exported).unwrap();
    let copy = run(&["add", "all.jsonl", "--kb", "dir:copy"]).expect_code(0).json();
    assert_eq!((&copy["put"], &copy["problems"]), (&added["put"], &json!([])));
    assert_eq!(
        run(&["export", "--kb", "dir:copy"]).expect_code(0).stdout,
        exported,
        "what is exported comes back"
    );
    for query in ["who founded the studio", "lighting", "stage rental invoice"] {
        let scored = |more: &[&str]| {
            let found = run(&[&["search", query], more].concat()).expect_code(0).json();
            let hits = found["results"].as_array().unwrap().clone();
            hits.iter().map(|hit| (hit["id"].clone(), hit["score"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(scored(&[]), scored(&["--kb", "dir:copy"]), "{query}");
    }
    assert_eq!(run(&["rm", "person:jon_lind"]).expect_code(0).json()["removed"], json!(["person:jon_lind"]));
    run(&["get", "person:jon_lind", "person:mira_okafor"]).expect_code(1);
    run(&["rebuild"]).expect_code(0);
    let record = run(&["get", "person:mira_okafor"]).expect_code(0).json();
    assert_eq!(record["records"][0]["title"], "Mira Okafor");
}

#[test]
fn unreadable_records_are_reported_with_file_and_line() {
    let project = Project::with(&["find-note"]);
    fs::write(project.dir().join("x.jsonl"), "{\"title\": \"Sound\"}\n{\"titel\": \"Not\"}\n").unwrap();
    let run = project.run(&["kb", "add", "x.jsonl"]).expect_code(1);
    assert!(run.stderr.contains("x.jsonl:2") && run.stderr.contains("`titel`"), "{}", run.stderr);
    assert!(run.stderr.contains("added") && run.stderr.contains("1 record,"), "{}", run.stderr);
    project.run(&["kb", "get", "doc:sound"]).expect_code(0);
    project.run(&["kb", "add"]).expect_code(2);
    project.run(&["kb", "add", "x.jsonl", "--namespace", "personal"]).expect_code(2);
    project.run(&["kb", "add", "x.jsonl", "--namespace", "public", "--owner", "ann"]).expect_code(2);
    project.run(&["kb", "search", "x", "--since", "soon"]).expect_code(2);
    project.run(&["kb", "search", "x", "--since", "2026-05-01", "--until", "2026-01-01"]).expect_code(2);
    project.run(&["kb", "search", "x", "--top-k", "0"]).expect_code(2);
    project.run(&["kb", "search", " ? "]).expect_code(2);
    let odd = project.run(&["kb", "stats", "--kb", "mongodb://x"]).expect_code(1);
    assert!(odd.stderr.contains("dir:"), "{}", odd.stderr);
}

#[test]
fn an_owner_makes_records_personal_and_several_records_are_one_json_value() {
    let project = Project::with(&["find-note"]);
    fs::write(project.dir().join("diary.md"), "The wombat slept.").unwrap();
    project.run(&["kb", "add", "diary.md", "--owner", "ann"]).expect_code(0);
    let found = |more: &[&str]| {
        let asked = [&["kb", "search", "wombat", "--format", "json"], more].concat();
        project.run(&asked).expect_code(0).json()["results"].as_array().unwrap().len()
    };
    assert_eq!((found(&[]), found(&["--namespace", "personal", "--owner", "ann"])), (0, 1));
    let got = project.run(&["kb", "get", "doc:diary", "doc:nope", "--format", "json"]).expect_code(1).json();
    assert_eq!((&got["records"][0]["id"], &got["notFound"]), (&json!("doc:diary"), &json!(["doc:nope"])));
    let removed =
        project.run(&["kb", "rm", "doc:diary", "doc:nope", "--format", "json"]).expect_code(1).json();
    assert_eq!(removed, json!({ "removed": ["doc:diary"], "notFound": ["doc:nope"] }));
}

#[cfg(unix)]
#[test]
fn pipes_and_empty_files_are_skipped() {
    let project = Project::with(&["find-note"]);
    let notes = project.dir().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("a.md"), "First.").unwrap();
    fs::write(notes.join("empty.md"), "\n \n").unwrap();
    let made = std::process::Command::new("mkfifo").arg(notes.join("pipe.md")).status().unwrap();
    assert!(made.success());
    let report = project.run(&["kb", "add", "notes", "--format", "json"]).expect_code(0).json();
    assert_eq!((&report["put"], &report["files"]), (&json!(1), &json!(2)), "{report}");
    let named = project.run(&["kb", "add", "notes/pipe.md"]).expect_code(1);
    assert!(named.stderr.contains("not a regular file"), "{}", named.stderr);
}

#[test]
fn a_watched_directory_is_added_again_when_a_file_changes() {
    let project = Project::with(&["find-note"]);
    let notes = project.dir().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("a.md"), "First.").unwrap();
    let mut command = project.command(&["kb", "add", "notes", "--watch"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut until = |word: &str| {
        lines.by_ref().map(Result::unwrap).find(|line| line.contains(word)).expect("the program has ended")
    };
    until("watching");
    fs::write(notes.join("b.md"), "Second.").unwrap();
    assert!(until("added").contains("added"));
    child.kill().unwrap();
    child.wait().unwrap();
    project.run(&["kb", "get", "doc:b"]).expect_code(0);
}

#[test]
fn a_file_of_the_same_name_added_later_replaces_nothing() {
    let project = Project::with(&["find-note"]);
    for (owner, text) in [("mira", "Hers."), ("otto", "His.")] {
        fs::create_dir(project.dir().join(owner)).unwrap();
        fs::write(project.dir().join(owner).join("notes.md"), text).unwrap();
        let path = format!("{owner}/notes.md");
        project.run(&["kb", "add", "--namespace", "personal", "--owner", owner, &path]).expect_code(0);
    }
    let kept = project.run(&["kb", "export"]).expect_code(0).stdout;
    assert_eq!(kept.lines().count(), 2, "{kept}");
    assert!(kept.contains("Hers.") && kept.contains("His."), "{kept}");
}
