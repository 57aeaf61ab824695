//! The `kb` capability, called as a handler calls it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_capabilities::{CallIdentity, Capability, CapabilityError, CapabilityOutput, Embedder};
use toolwright_kb::ingest::Progress;
use toolwright_kb::relevance::DEFAULT_MIN_SCORE;
use toolwright_kb::{EmbedderSource, Kb, KbCapability, Options};

/// Hashes words into 64 dimensions: texts with common words are near each other.
#[derive(Debug)]
struct HashEmbedder(&'static str);

impl Embedder for HashEmbedder {
    fn name(&self) -> &str {
        self.0
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        Ok(64)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        let embed = |text: &&str| {
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
        Ok(texts.iter().map(embed).collect())
    }
}

fn embedder_source(name: &'static str) -> EmbedderSource {
    Arc::new(move || Ok(Arc::new(HashEmbedder(name)) as Arc<dyn Embedder>))
}

fn options(dir: &Path, embedder_source: EmbedderSource) -> Options {
    let url = format!("dir:{}", dir.join("kb").display());
    let sources = vec![dir.join("files")];
    Options { url, sources, base: dir.to_owned(), embedder_source, min_score: DEFAULT_MIN_SCORE }
}

fn source_files() -> tempfile::TempDir {
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

async fn call(
    kb: &KbCapability,
    user: &str,
    function: &str,
    args: Value,
) -> Result<CapabilityOutput, CapabilityError> {
    call_until(kb, user, function, args, Instant::now() + Duration::from_secs(60)).await
}

async fn call_until(
    kb: &KbCapability,
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
async fn the_first_search_ingests_the_sources() {
    let dir = source_files();
    let kb = KbCapability::new(options(dir.path(), Arc::new(|| Err("no embedder".to_owned()))));
    assert!(!dir.path().join("kb").exists(), "nothing must be opened before the first call");
    let answer = call(&kb, "ann", "search", json!({"query": "who founded the studio"})).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("keyword"))));
    let first = &answer.value[0];
    assert_eq!(
        *first,
        json!({"id": "person:ada", "type": "person", "title": "Ada Lind", "score": 0.7523, "sourceType": "crm",
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
        call(&kb, "ann", "search", json!({"query": "boiler", "returnFields": ["snippet", "sources"]}))
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
async fn filters_namespaces_and_limits_are_applied() {
    let dir = source_files();
    let kb = KbCapability::new(options(dir.path(), Arc::new(|| Err("no embedder".to_owned()))));
    let found = async |user: &str, args: Value| -> Vec<String> {
        let value = call(&kb, user, "search", args).await.unwrap().value;
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
    let got = call(
        &kb,
        "bob",
        "get",
        json!({"ids": ["doc:mine", "doc:open", "doc:none"], "returnFields": ["full_text"]}),
    );
    let record = json!({"id": "doc:open", "type": "doc", "title": "Open day", "sourceType": "jsonl", "lastUpdated": null,
        "fullText": "Everybody may come."});
    assert_eq!(got.await.unwrap().value, json!({"records": [record], "notFound": ["doc:mine", "doc:none"]}));
    let own = call(&kb, "ann", "get", json!({"ids": ["doc:mine"]})).await.unwrap().value;
    assert_eq!(own["notFound"], json!([]));
}

#[tokio::test]
async fn invalid_arguments_and_missed_deadlines_have_error_codes() {
    let dir = source_files();
    let kb = KbCapability::new(options(dir.path(), Arc::new(|| Err("no embedder".to_owned()))));
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
        assert_eq!(call(&kb, "ann", function, args.clone()).await.unwrap_err().code, code, "{args}");
    }
    let late = call_until(&kb, "ann", "search", json!({"query": "x"}), Instant::now()).await;
    assert_eq!(late.unwrap_err().code, "TIMEOUT");
    let unknown_url = Options {
        url: "mongodb:x".to_owned(),
        ..options(dir.path(), Arc::new(|| Err("no embedder".to_owned())))
    };
    let fault =
        call(&KbCapability::new(unknown_url), "ann", "search", json!({"query": "x"})).await.unwrap_err();
    assert_eq!(fault.code, "NOT_CONFIGURED");
}

#[tokio::test]
async fn vectors_make_a_search_hybrid_and_a_second_embedder_is_refused() {
    let dir = source_files();
    let without = KbCapability::new(options(dir.path(), Arc::new(|| Err("no embedder".to_owned()))));
    call(&without, "ann", "search", json!({"query": "studio"})).await.unwrap();
    // The vectors are added without a second ingest.
    let with = KbCapability::new(options(dir.path(), embedder_source("one")));
    with.refresh();
    let query = json!({"query": "studio floors"});
    let answer = call(&with, "ann", "search", query.clone()).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("hybrid"))));
    assert_eq!(answer.value[0]["id"], "doc:studio");
    assert_eq!(
        call(&with, "ann", "search", query.clone()).await.unwrap(),
        answer,
        "results must be deterministic"
    );
    let other = KbCapability::new(options(dir.path(), embedder_source("two")));
    let answer = call(&other, "ann", "search", query.clone()).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("keyword"))));
    let url = format!("dir:{}", dir.path().join("kb").display());
    let kb = Kb::open(&url, embedder_source("two")).unwrap();
    let refused = kb.embed(&Progress::default()).unwrap_err().to_string();
    assert!(refused.contains("`one`") && refused.contains("toolwright kb rebuild"), "{refused}");
    kb.rebuild().unwrap();
    assert_eq!(kb.embed(&Progress::default()).unwrap(), 5);
    let answer = call(&other, "ann", "search", query).await.unwrap();
    assert_eq!(answer.meta, Some(("retrieval", json!("hybrid"))));
}

#[tokio::test]
async fn a_model_installed_while_a_server_runs_is_used() {
    let dir = source_files();
    let is_installed = Arc::new(AtomicBool::new(false));
    let (installed, source) = (Arc::clone(&is_installed), embedder_source("one"));
    let embedder_source: EmbedderSource =
        Arc::new(
            move || if installed.load(Ordering::SeqCst) { source() } else { Err("no embedder".to_owned()) },
        );
    let kb = KbCapability::new(options(dir.path(), embedder_source));
    kb.refresh();
    let query = json!({"query": "studio floors"});
    let keyword = Some(("retrieval", json!("keyword")));
    assert_eq!(call(&kb, "ann", "search", query.clone()).await.unwrap().meta, keyword);
    is_installed.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(60);
    while call(&kb, "ann", "search", query.clone()).await.unwrap().meta == keyword {
        assert!(Instant::now() < deadline, "the vectors were not created");
        tokio::task::yield_now().await;
    }
}

/// The demo records, by keyword. `tests/program/kb_model.rs` asks the same with the model.
#[tokio::test]
async fn a_question_without_an_answer_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned();
    let kb = KbCapability::new(Options {
        sources: vec![base.join("demo/kb")],
        base,
        ..options(dir.path(), Arc::new(|| Err("no embedder".to_owned())))
    });
    for (query, is_answerable) in [
        ("zzzzqqq", false),
        ("submarine warfare in 1942", false),
        ("which whales sing during the winter", false),
        ("lighting designer", true),
        ("onboarding", true),
        ("who founded the studio", true),
    ] {
        let answer = call(&kb, "ann", "search", json!({"query": query})).await.unwrap();
        let results = answer.value.as_array().unwrap();
        assert_eq!(!results.is_empty(), is_answerable, "{query}: {results:?}");
    }
}
