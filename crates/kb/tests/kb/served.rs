//! `kb.search` and `kb.get` as handlers see them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_capabilities::{CallIdentity, Capability, CapabilityError, CapabilityOutput, Embedder};
use toolwright_kb::ingest::Progress;
use toolwright_kb::{Embedders, Kb, KnowledgeBase, Options};

/// Hashes words into 64 numbers: texts with the same words are near each other.
#[derive(Debug)]
struct Hashing(&'static str);

impl Embedder for Hashing {
    fn name(&self) -> &str {
        self.0
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        Ok(64)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        let of = |text: &&str| {
            let mut vector = vec![0.001_f32; 64];
            for word in
                text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
            {
                let hash =
                    word.bytes().fold(5381_usize, |hash, byte| hash.wrapping_mul(33) ^ usize::from(byte));
                vector[hash % 64] += 1.0;
            }
            let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            vector.iter().map(|value| value / length).collect()
        };
        Ok(texts.iter().map(of).collect())
    }
}

fn embedder(name: &'static str) -> Embedders {
    Arc::new(move || Ok(Arc::new(Hashing(name)) as Arc<dyn Embedder>))
}

fn options(dir: &Path, embedders: Embedders) -> Options {
    let url = format!("dir:{}", dir.join("kb").display());
    Options { url, sources: vec![dir.join("files")], base: dir.to_owned(), embedders }
}

fn files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("files")).unwrap();
    let lines = [
        json!({"id": "person:ada", "title": "Ada Lind", "text": "Ada founded the studio in 2011. She paints.",
            "tags": ["founder"], "url": "https://studio.example/ada", "metadata": {"role": "founder"},
            "last_updated": "2026-01-02T00:00:00Z", "source_type": "crm"}),
        json!({"id": "doc:studio", "title": "The building", "text": "The studio has three floors. ".repeat(30)
            + "The boiler is in the cellar. " + &"More floors follow. ".repeat(30)}),
        json!({"id": "doc:mine", "title": "Shopping", "text": "Milk.", "namespace": "personal", "owner": "ann"}),
        json!({"id": "doc:open", "title": "Open day", "text": "Everybody may come.", "namespace": "public"}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(dir.path().join("files/x.jsonl"), text).unwrap();
    dir
}

async fn ask(
    kb: &KnowledgeBase,
    user: &str,
    function: &str,
    args: Value,
) -> Result<CapabilityOutput, CapabilityError> {
    ask_until(kb, user, function, args, Instant::now() + Duration::from_secs(60)).await
}

async fn ask_until(
    kb: &KnowledgeBase,
    user: &str,
    function: &str,
    args: Value,
    deadline: Instant,
) -> Result<CapabilityOutput, CapabilityError> {
    let asker = CallIdentity {
        tool: "kb_search",
        execution_id: "1",
        client_id: "test",
        session: None,
        user,
        org: None,
        roles: &[],
        deadline,
        now: None,
    };
    kb.call(&asker, function, vec![args]).await
}

#[tokio::test]
async fn a_first_search_ingests_the_sources_and_gives_evidence() {
    let dir = files();
    let kb = KnowledgeBase::new(options(dir.path(), Arc::new(|| Err("there is none".to_owned()))));
    assert!(!dir.path().join("kb").exists(), "nothing is opened before it is asked");
    let answer = ask(&kb, "ann", "search", json!({"query": "who founded the studio"})).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("keyword"))));
    let first = &answer.value[0];
    assert_eq!(
        *first,
        json!({"id": "person:ada", "type": "person", "title": "Ada Lind", "score": 1.0, "sourceType": "crm",
            "lastUpdated": "2026-01-02T00:00:00Z", "snippet": "Ada founded the studio in 2011. She paints.",
            "metadata": {"role": "founder"}, "url": "https://studio.example/ada"})
    );
    let scores: Vec<f64> =
        answer.value.as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(
        scores.is_sorted_by(|left, right| left >= right)
            && scores.iter().all(|score| (0.0..=1.0).contains(score))
    );
    let boiler =
        ask(&kb, "ann", "search", json!({"query": "boiler", "returnFields": ["snippet", "sources"]}))
            .await
            .unwrap();
    let snippet = boiler.value[0]["snippet"].as_str().unwrap();
    assert!(
        snippet.starts_with("… ")
            && snippet.contains("The boiler is in the cellar.")
            && snippet.ends_with(" …"),
        "{snippet}"
    );
    assert!(snippet.len() < 500);
    assert_eq!(boiler.value[0]["sources"], json!([{"type": "file", "name": "files/x.jsonl"}]));
    assert!(boiler.value[0].get("url").is_none() && boiler.value[0].get("metadata").is_none());
}

#[tokio::test]
async fn filters_namespaces_and_numbers_are_heeded() {
    let dir = files();
    let kb = KnowledgeBase::new(options(dir.path(), Arc::new(|| Err("there is none".to_owned()))));
    let found = async |user: &str, args: Value| -> Vec<String> {
        let value = ask(&kb, user, "search", args).await.unwrap().value;
        value.as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found("ann", json!({"query": "studio", "topK": 1})).await.len(), 1);
    assert_eq!(found("ann", json!({"query": "studio", "filters": {"type": "doc"}})).await, ["doc:studio"]);
    assert_eq!(
        found("ann", json!({"query": "studio", "filters": {"tags": ["founder"]}})).await,
        ["person:ada"]
    );
    let range = |start: &str, end: &str| json!({"query": "studio", "filters": {"date_range": {"start": start, "end": end}}});
    assert_eq!(found("ann", range("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z")).await, ["person:ada"]);
    assert!(found("ann", range("2026-01-03T00:00:00Z", "2026-02-02T00:00:00Z")).await.is_empty());
    assert_eq!(found("ann", json!({"query": "milk", "namespace": "personal"})).await, ["doc:mine"]);
    assert!(found("bob", json!({"query": "milk", "namespace": "personal"})).await.is_empty());
    assert_eq!(found("bob", json!({"query": "everybody", "namespace": "public"})).await, ["doc:open"]);
    let got = ask(
        &kb,
        "bob",
        "get",
        json!({"ids": ["doc:mine", "doc:open", "doc:none"], "returnFields": ["full_text"]}),
    );
    let record = json!({"id": "doc:open", "type": "doc", "title": "Open day", "sourceType": "jsonl", "lastUpdated": null,
        "fullText": "Everybody may come."});
    assert_eq!(got.await.unwrap().value, json!({"records": [record], "notFound": ["doc:mine", "doc:none"]}));
    let own = ask(&kb, "ann", "get", json!({"ids": ["doc:mine"]})).await.unwrap().value;
    assert_eq!(own["notFound"], json!([]));
}

#[tokio::test]
async fn wrong_arguments_and_late_questions_have_their_codes() {
    let dir = files();
    let kb = KnowledgeBase::new(options(dir.path(), Arc::new(|| Err("there is none".to_owned()))));
    for (function, args, code) in [
        ("search", json!({}), "INVALID_ARGUMENT"),
        ("search", json!({"query": "x", "namespace": "secret"}), "INVALID_NAMESPACE"),
        ("search", json!({"query": "x", "topK": 0}), "INVALID_ARGUMENT"),
        ("search", json!({"query": "x", "returnFields": ["everything"]}), "INVALID_ARGUMENT"),
        ("search", json!({"query": "x", "filters": {"kind": "doc"}}), "INVALID_ARGUMENT"),
        ("search", json!({"query": "x", "filters": {"date_range": {"start": "soon"}}}), "INVALID_ARGUMENT"),
        ("get", json!({"ids": "doc:a"}), "INVALID_ARGUMENT"),
        ("put", json!({}), "NOT_CONFIGURED"),
    ] {
        assert_eq!(ask(&kb, "ann", function, args.clone()).await.unwrap_err().code, code, "{args}");
    }
    let late = ask_until(&kb, "ann", "search", json!({"query": "x"}), Instant::now()).await;
    assert_eq!(late.unwrap_err().code, "TIMEOUT");
    let nowhere = Options {
        url: "mongodb:x".to_owned(),
        ..options(dir.path(), Arc::new(|| Err("there is none".to_owned())))
    };
    let fault = ask(&KnowledgeBase::new(nowhere), "ann", "search", json!({"query": "x"})).await.unwrap_err();
    assert_eq!(fault.code, "NOT_CONFIGURED");
}

#[tokio::test]
async fn vectors_make_a_search_hybrid_and_another_embedder_is_not_mixed_in() {
    let dir = files();
    let without = KnowledgeBase::new(options(dir.path(), Arc::new(|| Err("there is none".to_owned()))));
    ask(&without, "ann", "search", json!({"query": "studio"})).await.unwrap();
    // The vectors come without a second ingest.
    let with = KnowledgeBase::new(options(dir.path(), embedder("one")));
    with.refresh();
    let question = json!({"query": "studio floors"});
    let answer = ask(&with, "ann", "search", question.clone()).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("hybrid"))));
    assert_eq!(answer.value[0]["id"], "doc:studio");
    assert_eq!(ask(&with, "ann", "search", question.clone()).await.unwrap(), answer, "the same every time");
    let other = KnowledgeBase::new(options(dir.path(), embedder("two")));
    let answer = ask(&other, "ann", "search", question.clone()).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("keyword"))));
    let url = format!("dir:{}", dir.path().join("kb").display());
    let kb = Kb::open(&url, embedder("two")).unwrap();
    let refused = kb.embed(&Progress::default()).unwrap_err().to_string();
    assert!(refused.contains("`one`") && refused.contains("toolwright kb rebuild"), "{refused}");
    kb.rebuild().unwrap();
    assert_eq!(kb.embed(&Progress::default()).unwrap(), 5);
    let answer = ask(&other, "ann", "search", question).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("hybrid"))));
}

#[tokio::test]
async fn a_server_takes_up_a_model_that_comes_while_it_runs() {
    let dir = files();
    let is_there = Arc::new(AtomicBool::new(false));
    let (there, given) = (Arc::clone(&is_there), embedder("one"));
    let embedders: Embedders =
        Arc::new(
            move || if there.load(Ordering::SeqCst) { given() } else { Err("there is none".to_owned()) },
        );
    let kb = KnowledgeBase::new(options(dir.path(), embedders));
    kb.refresh();
    let question = json!({"query": "studio floors"});
    let keyword = Some(("retrieval", json!("keyword")));
    assert_eq!(ask(&kb, "ann", "search", question.clone()).await.unwrap().meta, keyword);
    is_there.store(true, Ordering::SeqCst);
    let give_up = Instant::now() + Duration::from_secs(60);
    while ask(&kb, "ann", "search", question.clone()).await.unwrap().meta == keyword {
        assert!(Instant::now() < give_up, "the vectors never come");
        tokio::task::yield_now().await;
    }
}
