#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::support::Server;

fn settings(server: &Server) -> Settings {
    Settings { backoff: Duration::from_millis(1), ..Settings::new(server.url(), "small") }
}

fn endpoint(server: &Server) -> Endpoint {
    Endpoint::new(settings(server)).unwrap()
}

fn inputs(request: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    serde_json::from_value(body["input"].clone()).unwrap()
}

/// A valid response in reverse order. A text's vector depends on its length.
fn embed_response(request: &str) -> (String, Vec<u8>) {
    let item = |(index, text): (usize, &String)| json!({ "object": "embedding", "index": index, "embedding": [text.len(), 1] });
    let data: Vec<Value> = inputs(request).iter().enumerate().map(item).rev().collect();
    let answer = json!({ "object": "list", "data": data, "model": "small", "usage": { "total_tokens": 5 } });
    ("200 OK\r\ncontent-type: application/json".to_owned(), answer.to_string().into_bytes())
}

fn embed_fault(status: &'static str, body: &'static str) -> (CapabilityError, usize) {
    let server = Server::start(move |_, _| (status.to_owned(), body.into()));
    let fault = endpoint(&server).embed(&["one"]).unwrap_err();
    (fault, server.requests().len())
}

#[test]
fn vectors_are_normalized_and_in_the_order_of_the_texts() {
    let server = Server::start(|_, request| embed_response(request));
    let key = Some(Secret("secret".to_owned()));
    let endpoint = Endpoint::new(Settings { key, ..settings(&server) }).unwrap();
    let vectors = endpoint.embed(&["abc", "abcd"]).unwrap();
    let length = |n: f32| n.hypot(1.0);
    assert_eq!(vectors, [[3.0 / length(3.0), 1.0 / length(3.0)], [4.0 / length(4.0), 1.0 / length(4.0)]]);
    assert_eq!(endpoint.dimensions().unwrap(), 2);
    assert_eq!(endpoint.name(), format!("small at {}/v1/embeddings", server.url()));
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1"), "{request}");
    assert!(request.to_ascii_lowercase().contains("authorization: bearer secret"), "{request}");
    assert!(request.ends_with(r#"{"model":"small","input":["abc","abcd"]}"#), "{request}");
    assert!(!format!("{endpoint:?}").contains("secret"));
}

#[test]
fn texts_are_batched_and_empty_ones_replaced() {
    let server = Server::start(|_, request| embed_response(request));
    let mut texts: Vec<String> = (0..150).map(|number| format!("text {number}")).collect();
    texts[149] = String::new();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(endpoint(&server).embed(&texts).unwrap().len(), 150);
    let sizes: Vec<usize> = server.requests().iter().map(|request| inputs(request).len()).collect();
    assert_eq!(sizes, [64, 64, 22]);
    assert_eq!(inputs(&server.requests()[2])[21], ".");
    let long = "x".repeat(MAX_BATCH_BYTES / 2 + 1);
    endpoint(&server).embed(&[&long, &long, "short"]).unwrap();
    let sizes: Vec<usize> = server.requests()[3..].iter().map(|request| inputs(request).len()).collect();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn transient_errors_are_retried() {
    let server = Server::start(|number, request| match number {
        0 => ("429 Too Many Requests\r\nretry-after: 0".to_owned(), Vec::new()),
        1 => ("503 Service Unavailable".to_owned(), Vec::new()),
        _ => embed_response(request),
    });
    assert_eq!(endpoint(&server).embed(&["one"]).unwrap().len(), 1);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn permanent_errors_are_reported() {
    let (fault, attempts) = embed_fault("429 Too Many Requests", r#"{"error":"slow down"}"#);
    assert_eq!((fault.code, attempts), ("RATE_LIMIT", 5));
    assert!(fault.message.ends_with("slow down"), "{fault}");
    assert!(fault.message.starts_with("the embedder small at http://127.0.0.1:"), "{fault}");
    let (fault, _) = embed_fault("500 Oops", "panicked at /srv/inside.rs");
    assert!(fault.message.ends_with("it responded 500 Internal Server Error"), "{fault}");
    let (fault, attempts) = embed_fault("429 Too Many Requests\r\nretry-after: 3600", "");
    assert_eq!((fault.code, attempts), ("RATE_LIMIT", 1), "a Retry-After of an hour must not be waited for");
    assert_eq!(embed_fault("500 Oops", "").1, 5);
    let (fault, attempts) = embed_fault("401 Unauthorized", r#"{"error":{"message":"no such key"}}"#);
    assert_eq!((fault.code, attempts), ("FORBIDDEN", 1));
    assert!(fault.message.contains("no such key"), "{fault}");
}

#[test]
fn invalid_responses_are_refused() {
    for (body, expected) in [
        ("<html>hello</html>", "does not match the embeddings API"),
        (r#"{"data":[]}"#, "0 vectors for 1 texts"),
        (r#"{"data":[{"index":1,"embedding":[1]}]}"#, "out of range"),
        (r#"{"data":[{"index":0,"embedding":[]}]}"#, "zero or not finite"),
        (r#"{"data":[{"index":0,"embedding":[0,0]}]}"#, "zero or not finite"),
        (r#"{"data":[{"index":0,"embedding":[1e39]}]}"#, "embedding"),
        (r#"{"data":[{"index":0,"embedding":["a"]}]}"#, "does not match the embeddings API"),
    ] {
        let (fault, attempts) = embed_fault("200 OK", body);
        assert_eq!((fault.code, attempts), ("UNREACHABLE", 1), "{body}");
        assert!(fault.message.contains(expected), "{body}: {fault}");
    }
}

#[test]
fn vectors_of_a_different_length_are_refused() {
    let answer = r#"{"data":[{"index":0,"embedding":[1,2,3]}]}"#;
    let server = Server::start(move |number, request| match number {
        0 => embed_response(request),
        _ => ("200 OK".to_owned(), answer.into()),
    });
    let endpoint = endpoint(&server);
    endpoint.embed(&["one"]).unwrap();
    let fault = endpoint.embed(&["one"]).unwrap_err();
    assert!(fault.message.contains("3 dimensions instead of 2"), "{fault}");
    let shortened = Endpoint::new(Settings { dimensions: Some(256), ..settings(&server) }).unwrap();
    let fault = shortened.embed(&["one"]).unwrap_err();
    assert!(fault.message.contains("3 dimensions instead of 256"), "{fault}");
    assert!(server.requests()[2].contains(r#""dimensions":256"#));
    assert!(shortened.name().starts_with("small/256 at "));
}

#[test]
fn an_unreachable_service_is_reported_and_may_be_dropped_on_an_async_thread() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings =
        Settings { backoff: Duration::from_millis(1), ..Settings::new(format!("http://{unused}"), "m") };
    let endpoint = Endpoint::new(settings).unwrap();
    assert_eq!(endpoint.embed(&["one"]).unwrap_err().code, "UNREACHABLE");
    assert!(endpoint.dimensions().is_err());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async move { drop(endpoint) });
}

#[test]
fn urls_are_completed_and_checked() {
    let url = |text| embeddings_url(text).map(|url| url.to_string());
    assert_eq!(url("http://localhost:11434").unwrap(), "http://localhost:11434/v1/embeddings");
    assert_eq!(url("https://api.openai.com/v1/").unwrap(), "https://api.openai.com/v1/embeddings");
    assert_eq!(url("https://x.example/a/embeddings?v=2").unwrap(), "https://x.example/a/embeddings?v=2");
    assert!(url("api.openai.com").unwrap_err().contains("not a valid URL"));
    assert!(url("file:///etc").unwrap_err().contains("https://"));
    let nameless = Endpoint::new(Settings::new("http://localhost", "")).unwrap_err();
    assert!(nameless.contains("`model`"), "{nameless}");
}

#[test]
fn secrets_in_responses_and_urls_are_redacted() {
    let repeated = r#"{"error":{"message":"Incorrect API key provided: sk-secret."}}"#;
    let server = Server::start(move |_, _| ("401 Unauthorized".to_owned(), repeated.into()));
    let key = Some(Secret("sk-secret".to_owned()));
    let endpoint = Endpoint::new(Settings { key, ..settings(&server) }).unwrap();
    let fault = endpoint.embed(&["one"]).unwrap_err();
    assert!(fault.message.ends_with("Incorrect API key provided: …."), "{fault}");
    let url = server.url().replace("http://", "http://mira:sesame@");
    let endpoint = Endpoint::new(Settings { url, ..settings(&server) }).unwrap();
    assert!(endpoint.name().contains("mira@127.0.0.1") && !endpoint.name().contains("sesame"));
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://mira:sesame@{unused}/v1?key=sesame");
    let endpoint = Endpoint::new(Settings { url, ..settings(&server) }).unwrap();
    assert!(!endpoint.embed(&["one"]).unwrap_err().message.contains("sesame"));
    assert!(!endpoint.name().contains("sesame"));
    for wrong in ["http://mira:sesame@", "ftp://mira:sesame@x.example"] {
        assert!(!embeddings_url(wrong).unwrap_err().contains("sesame"));
    }
}

#[test]
fn a_refused_query_does_not_open_the_circuit_breaker() {
    let server = Server::start(|number, request| match number {
        0 => ("413 Content Too Large".to_owned(), Vec::new()),
        _ => embed_response(request),
    });
    let endpoint = endpoint(&server);
    assert!(endpoint.embed_query("too long").is_err());
    assert_eq!(endpoint.embed_query("what").unwrap().len(), 2);
}

#[test]
fn the_circuit_breaker_rejects_queries_after_an_outage() {
    let server = Server::start(|number, request| match number {
        0 => ("401 Unauthorized".to_owned(), Vec::new()),
        _ => embed_response(request),
    });
    let endpoint = endpoint(&server);
    let fault = endpoint.embed_query("who").unwrap_err();
    assert_eq!(endpoint.embed_query("what").unwrap_err(), fault);
    assert_eq!(server.requests().len(), 1);
    *endpoint.circuit_breaker.lock().unwrap() = Some((Instant::now(), fault));
    assert_eq!(endpoint.embed_query("what").unwrap().len(), 2);
    assert_eq!(endpoint.dimensions().unwrap(), 2);
}

#[test]
fn a_timeout_reports_the_last_error_of_the_service() {
    let server = Server::start(|_, _| ("503 Service Unavailable".to_owned(), Vec::new()));
    let query_timeout = Duration::from_millis(300);
    let slow = Settings { backoff: Duration::from_secs(60), query_timeout, ..settings(&server) };
    let fault = Endpoint::new(slow).unwrap().embed_query("who").unwrap_err();
    assert!(fault.message.contains("it responded 503"), "{fault}");
}

#[test]
fn a_query_times_out_before_a_long_retry_after() {
    let server = Server::start(|_, _| ("503 Service Unavailable\r\nretry-after: 20".to_owned(), Vec::new()));
    let started = Instant::now();
    let fault = endpoint(&server).embed_query("who").unwrap_err();
    assert_eq!(fault.code, "UNREACHABLE");
    assert!(started.elapsed() < Duration::from_secs(10), "waited for Retry-After");
    let server = Server::start(|_, request| embed_response(request));
    assert_eq!(endpoint(&server).embed_query(" ").unwrap().len(), 2);
}
