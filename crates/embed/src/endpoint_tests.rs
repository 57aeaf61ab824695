#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::test_support::Server;

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

/// As the API does, but in reverse order: a text's vector tells its length.
fn well(request: &str) -> (String, Vec<u8>) {
    let item = |(index, text): (usize, &String)| json!({ "object": "embedding", "index": index, "embedding": [text.len(), 1] });
    let data: Vec<Value> = inputs(request).iter().enumerate().map(item).rev().collect();
    let answer = json!({ "object": "list", "data": data, "model": "small", "usage": { "total_tokens": 5 } });
    ("200 OK\r\ncontent-type: application/json".to_owned(), answer.to_string().into_bytes())
}

fn fault_of(status: &'static str, body: &'static str) -> (Fault, usize) {
    let server = Server::start(move |_, _| (status.to_owned(), body.into()));
    let fault = endpoint(&server).embed(&["one"]).unwrap_err();
    (fault, server.requests().len())
}

#[test]
fn vectors_come_back_in_order_with_length_1() {
    let server = Server::start(|_, request| well(request));
    let key = Some(Key("secret".to_owned()));
    let endpoint = Endpoint::new(Settings { key, ..settings(&server) }).unwrap();
    let vectors = endpoint.embed(&["abc", "abcd"]).unwrap();
    let length = |n: f32| n.hypot(1.0);
    assert_eq!(vectors, [[3.0 / length(3.0), 1.0 / length(3.0)], [4.0 / length(4.0), 1.0 / length(4.0)]]);
    assert_eq!(endpoint.dimensions(), 2);
    assert_eq!(endpoint.name(), format!("small at {}/v1/embeddings", server.url()));
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1"), "{request}");
    assert!(request.to_ascii_lowercase().contains("authorization: bearer secret"), "{request}");
    assert!(request.ends_with(r#"{"model":"small","input":["abc","abcd"]}"#), "{request}");
    assert!(!format!("{endpoint:?}").contains("secret"));
}

#[test]
fn many_texts_go_out_in_batches_and_empty_ones_as_something() {
    let server = Server::start(|_, request| well(request));
    let mut texts: Vec<String> = (0..150).map(|number| format!("text {number}")).collect();
    texts[149] = String::new();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(endpoint(&server).embed(&texts).unwrap().len(), 150);
    let sizes: Vec<usize> = server.requests().iter().map(|request| inputs(request).len()).collect();
    assert_eq!(sizes, [64, 64, 22]);
    assert_eq!(inputs(&server.requests()[2])[21], ".");
    let long = "x".repeat(BYTES / 2 + 1);
    endpoint(&server).embed(&[&long, &long, "short"]).unwrap();
    let sizes: Vec<usize> = server.requests()[3..].iter().map(|request| inputs(request).len()).collect();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn failures_that_pass_are_tried_again() {
    let server = Server::start(|number, request| match number {
        0 => ("429 Too Many Requests\r\nretry-after: 0".to_owned(), Vec::new()),
        1 => ("503 Service Unavailable".to_owned(), Vec::new()),
        _ => well(request),
    });
    assert_eq!(endpoint(&server).embed(&["one"]).unwrap().len(), 1);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn failures_that_stay_are_told() {
    let (fault, attempts) = fault_of("429 Too Many Requests", r#"{"error":"slow down"}"#);
    assert_eq!((fault.code, attempts), ("RATE_LIMIT", 5));
    assert!(fault.message.ends_with("slow down"), "{fault}");
    let (fault, _) = fault_of("500 Oops", "panicked at /srv/inside.rs");
    assert!(fault.message.ends_with("it answers 500 Internal Server Error"), "{fault}");
    let (fault, attempts) = fault_of("429 Too Many Requests\r\nretry-after: 3600", "");
    assert_eq!((fault.code, attempts), ("RATE_LIMIT", 1), "an hour is not waited for");
    assert_eq!(fault_of("500 Oops", "").1, 5);
    let (fault, attempts) = fault_of("401 Unauthorized", r#"{"error":{"message":"no such key"}}"#);
    assert_eq!((fault.code, attempts), ("FORBIDDEN", 1));
    assert!(fault.message.contains("no such key"), "{fault}");
}

#[test]
fn answers_that_are_none_are_refused() {
    for (body, expected) in [
        ("<html>hello</html>", "not one of the embeddings API"),
        (r#"{"data":[]}"#, "0 vectors came back for 1 texts"),
        (r#"{"data":[{"index":1,"embedding":[1]}]}"#, "no such text"),
        (r#"{"data":[{"index":0,"embedding":[]}]}"#, "no direction"),
        (r#"{"data":[{"index":0,"embedding":[0,0]}]}"#, "no direction"),
        (r#"{"data":[{"index":0,"embedding":[1e39]}]}"#, "embedding"),
        (r#"{"data":[{"index":0,"embedding":["a"]}]}"#, "not one of the embeddings API"),
    ] {
        let (fault, attempts) = fault_of("200 OK", body);
        assert_eq!((fault.code, attempts), ("UNREACHABLE", 1), "{body}");
        assert!(fault.message.contains(expected), "{body}: {fault}");
    }
}

#[test]
fn vectors_of_another_length_are_refused() {
    let answer = r#"{"data":[{"index":0,"embedding":[1,2,3]}]}"#;
    let server = Server::start(move |number, request| match number {
        0 => well(request),
        _ => ("200 OK".to_owned(), answer.into()),
    });
    let endpoint = endpoint(&server);
    endpoint.embed(&["one"]).unwrap();
    let fault = endpoint.embed(&["one"]).unwrap_err();
    assert!(fault.message.contains("3 numbers instead of 2"), "{fault}");
    let asked = Endpoint::new(Settings { dimensions: Some(256), ..settings(&server) }).unwrap();
    let fault = asked.embed(&["one"]).unwrap_err();
    assert!(fault.message.contains("3 numbers instead of 256"), "{fault}");
    assert!(server.requests()[2].contains(r#""dimensions":256"#));
    assert!(asked.name().starts_with("small/256 at "));
}

#[test]
fn a_service_that_is_not_there_is_told_and_may_be_dropped_anywhere() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings =
        Settings { backoff: Duration::from_millis(1), ..Settings::new(format!("http://{unused}"), "m") };
    let endpoint = Endpoint::new(settings).unwrap();
    assert_eq!(endpoint.embed(&["one"]).unwrap_err().code, "UNREACHABLE");
    assert_eq!(endpoint.dimensions(), 0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async move { drop(endpoint) });
}

#[test]
fn addresses_are_completed_and_checked() {
    let of = |text| address(text).map(|url| url.to_string());
    assert_eq!(of("http://localhost:11434").unwrap(), "http://localhost:11434/v1/embeddings");
    assert_eq!(of("https://api.openai.com/v1/").unwrap(), "https://api.openai.com/v1/embeddings");
    assert_eq!(of("https://x.example/a/embeddings?v=2").unwrap(), "https://x.example/a/embeddings?v=2");
    assert!(of("api.openai.com").unwrap_err().contains("cannot be used"));
    assert!(of("file:///etc").unwrap_err().contains("https://"));
    let nameless = Endpoint::new(Settings::new("http://localhost", "")).unwrap_err();
    assert!(nameless.contains("`model`"), "{nameless}");
}

#[test]
fn no_secret_is_shown_that_a_service_repeats_or_an_address_has() {
    let repeated = r#"{"error":{"message":"Incorrect API key provided: sk-secret."}}"#;
    let server = Server::start(move |_, _| ("401 Unauthorized".to_owned(), repeated.into()));
    let key = Some(Key("sk-secret".to_owned()));
    let endpoint = Endpoint::new(Settings { key, ..settings(&server) }).unwrap();
    let fault = endpoint.embed(&["one"]).unwrap_err();
    assert!(fault.message.ends_with("Incorrect API key provided: …."), "{fault}");
    let url = server.url().replace("http://", "http://mira:sesame@");
    let endpoint = Endpoint::new(Settings { url, ..settings(&server) }).unwrap();
    assert!(endpoint.name().contains("mira@127.0.0.1") && !endpoint.name().contains("sesame"));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://mira:sesame@{nobody}/v1?key=sesame");
    let endpoint = Endpoint::new(Settings { url, ..settings(&server) }).unwrap();
    assert!(!endpoint.embed(&["one"]).unwrap_err().message.contains("sesame"));
    assert!(!endpoint.name().contains("sesame"));
    for wrong in ["http://mira:sesame@", "ftp://mira:sesame@x.example"] {
        assert!(!address(wrong).unwrap_err().contains("sesame"));
    }
}

#[test]
fn a_question_that_is_not_taken_stops_no_other() {
    let server = Server::start(|number, request| match number {
        0 => ("413 Content Too Large".to_owned(), Vec::new()),
        _ => well(request),
    });
    let endpoint = endpoint(&server);
    assert!(endpoint.question("too long").is_err());
    assert_eq!(endpoint.question("what").unwrap().len(), 2);
}

#[test]
fn after_a_question_in_vain_the_next_ones_do_not_wait() {
    let server = Server::start(|number, request| match number {
        0 => ("401 Unauthorized".to_owned(), Vec::new()),
        _ => well(request),
    });
    let endpoint = endpoint(&server);
    let fault = endpoint.question("who").unwrap_err();
    assert_eq!(endpoint.question("what").unwrap_err(), fault);
    assert_eq!(server.requests().len(), 1);
    *endpoint.pause.lock().unwrap() = Some((Instant::now(), fault));
    assert_eq!(endpoint.question("what").unwrap().len(), 2);
    assert_eq!(endpoint.length().unwrap(), 2);
}

#[test]
fn the_reason_of_a_service_is_told_also_when_time_runs_out() {
    let server = Server::start(|_, _| ("503 Service Unavailable".to_owned(), Vec::new()));
    let question = Duration::from_millis(300);
    let slow = Settings { backoff: Duration::from_secs(60), question, ..settings(&server) };
    let fault = Endpoint::new(slow).unwrap().question("who").unwrap_err();
    assert!(fault.message.contains("it answers 503"), "{fault}");
}

#[test]
fn a_question_does_not_wait_for_a_service_that_is_away() {
    let server = Server::start(|_, _| ("503 Service Unavailable\r\nretry-after: 20".to_owned(), Vec::new()));
    let begun = std::time::Instant::now();
    let fault = endpoint(&server).question("who").unwrap_err();
    assert_eq!(fault.code, "UNREACHABLE");
    assert!(begun.elapsed() < Duration::from_secs(10), "as long as an ingest is patient");
    let server = Server::start(|_, request| well(request));
    assert_eq!(endpoint(&server).question(" ").unwrap().len(), 2);
}
