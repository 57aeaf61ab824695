//! Tools that are one HTTP request, against a real server on loopback.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwright_orchestrator::Runtime;
use toolwright_registry::declared;
use toolwright_registry::toolset::Toolset;

use crate::support::call;

/// A server that responds to every request with the same status and body, and records the requests.
struct Service {
    origin: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Service {
    async fn start(status: &'static str, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = vec![0; 8192];
                let mut length = 0;
                // One read may return only the head.
                loop {
                    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                    let head = text.split_once("\r\n\r\n");
                    let wanted = text.lines().find_map(|line| line.strip_prefix("content-length: "));
                    let whole =
                        head.is_some_and(|(_, rest)| rest.len() >= wanted.map_or(0, |n| n.parse().unwrap()));
                    if whole {
                        requests.lock().unwrap().push(text);
                        break;
                    }
                    length += stream.read(&mut bytes[length..]).await.unwrap();
                }
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { origin, seen }
    }

    /// The first line of the last request, its headers and body.
    fn last(&self) -> String {
        self.seen.lock().unwrap().last().cloned().unwrap_or_default()
    }

    fn runtime(&self, how: Value, effects: &str) -> Runtime {
        let mut how = how;
        how["type"] = "http".into();
        how["url"] = format!("{}{}", self.origin, how["url"].as_str().unwrap()).into();
        let file = json!({ "version": 2, "tools": [{
            "name": "ask", "description": "Asks.", "type": "function", "sideEffects": effects, "implementation": how,
            "parameters": { "type": "object", "additionalProperties": false, "required": ["id"], "properties": {
                "id": { "type": "string" }, "limit": { "type": "integer" }, "tags": { "type": "array" },
                "note": { "type": "string" },
            } },
        }] });
        let path = Path::new("more.json");
        let (tools, errors) = declared::read(path, &file.to_string(), &|_| false);
        assert_eq!(errors, []);
        let (toolset, errors) = Toolset::empty().with_declared(path, tools);
        assert_eq!(errors, []);
        Runtime::builder(Arc::new(toolset), ".").build()
    }
}

#[tokio::test]
async fn arguments_go_encoded_to_the_path_and_the_rest_to_the_query() {
    let service = Service::start("200 OK", r#"{ "found": [{ "name": "a" }] }"#).await;
    let runtime =
        service.runtime(json!({ "url": "/items/{id}/x", "response": { "data": "/found/0" } }), "read_only");
    let args = json!({ "id": "a/../b ?#ä", "limit": 3, "tags": ["x", "y z"] });
    assert_eq!(call(&runtime, "ask", args).await["data"], json!({ "name": "a" }));
    let line = service.last().lines().next().unwrap().to_owned();
    assert_eq!(line, "GET /items/a%2F..%2Fb%20%3F%23%C3%A4/x?limit=3&tags=x&tags=y%20z HTTP/1.1");
}

#[tokio::test]
async fn whole_numbers_beyond_64_bits_are_not_rounded() {
    let service =
        Service::start("200 OK", r#"{ "id": 123456789012345678901, "n": 18446744073709551615 }"#).await;
    let runtime = service.runtime(json!({ "url": "/items/{id}" }), "read_only");
    let data = &call(&runtime, "ask", json!({ "id": "a" })).await["data"];
    assert_eq!(*data, json!({ "id": "123456789012345678901", "n": u64::MAX }));
}

#[tokio::test]
async fn an_argument_in_a_path_cannot_escape_its_segment() {
    let service = Service::start("200 OK", "{}").await;
    let runtime = service.runtime(json!({ "url": "/items/{id}" }), "read_only");
    for id in ["", ".", ".."] {
        let envelope = call(&runtime, "ask", json!({ "id": id })).await;
        assert_eq!(envelope["error"]["type"], "VALIDATION", "{envelope}");
    }
    assert_eq!(service.last(), "");
}

#[tokio::test]
async fn a_body_template_is_filled_without_absent_arguments() {
    let service = Service::start("201 Created", "").await;
    let how = json!({
        "method": "POST", "url": "/notes", "headers": { "x-for": "{id}", "x-home": "${CARGO_PKG_NAME}" },
        "body": { "title": "about {id}", "limit": "{limit}", "note": "{note}", "tags": ["{id}", "{note}"] },
    });
    let envelope = call(&service.runtime(how, "writes"), "ask", json!({ "id": "n1", "limit": 2 })).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["data"], Value::Null);
    let sent = service.last();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"title":"about n1","limit":2,"tags":["n1"]}"#);
    for line in ["x-for: n1", "x-home: toolwright-orchestrator", "content-type: application/json"] {
        assert!(head.lines().any(|other| other == line), "{line} in {head}");
    }
    // It differs from the call's id, which other sessions may use, too.
    let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap();
    assert!(key.len() == 64 && key != "call-1", "{key}");
}

#[tokio::test]
async fn without_a_template_the_remaining_arguments_are_the_body() {
    let service = Service::start("200 OK", "[1]").await;
    let runtime = service.runtime(json!({ "method": "PUT", "url": "/notes/{id}" }), "writes");
    assert_eq!(call(&runtime, "ask", json!({ "id": "n1", "note": "x" })).await["data"], json!([1]));
    assert!(service.last().ends_with(r#"{"note":"x"}"#), "{}", service.last());
}

#[tokio::test]
async fn a_status_becomes_the_matching_error_type() {
    for (status, kind, retryable, partial) in [
        ("400 Bad Request", "PERMANENT", false, false),
        ("401 Unauthorized", "AUTH", false, false),
        ("404 Not Found", "NOT_FOUND", false, false),
        ("409 Conflict", "CONFLICT", false, false),
        ("429 Too Many Requests", "RATE_LIMIT", true, false),
        ("503 Service Unavailable", "TRANSIENT", true, true),
    ] {
        let service = Service::start(status, r#"{ "why": "because" }"#).await;
        let runtime = service.runtime(json!({ "method": "POST", "url": "/" }), "writes");
        let envelope = call(&runtime, "ask", json!({ "id": "a" })).await;
        let error = &envelope["error"];
        assert_eq!(error["type"], kind, "{envelope}");
        assert_eq!(error["retryable"], retryable, "{envelope}");
        assert_eq!(error["partialSideEffects"], partial, "{envelope}");
        assert_eq!(error["details"]["body"], r#"{ "why": "because" }"#);
        // A service that limits the rate without a `retry-after` header gets the default pause.
        let wait = if kind == "RATE_LIMIT" { json!(5000) } else { Value::Null };
        assert_eq!(error["details"]["retryAfterMs"], wait, "{envelope}");
    }
}

#[tokio::test]
async fn unreachable_services_and_missing_data_are_reported_without_a_leak() {
    let service = Service { origin: "http://127.0.0.1:1".to_owned(), seen: Arc::default() };
    let envelope =
        call(&service.runtime(json!({ "url": "/" }), "read_only"), "ask", json!({ "id": "a" })).await;
    assert_eq!(envelope["error"]["type"], "TRANSIENT", "{envelope}");
    assert!(!envelope.to_string().contains("127.0.0.1"), "{envelope}");

    let service = Service::start("200 OK", r#"{ "other": 1 }"#).await;
    let runtime = service.runtime(json!({ "url": "/", "response": { "data": "/found" } }), "read_only");
    let envelope = call(&runtime, "ask", json!({ "id": "a" })).await;
    assert_eq!(envelope["error"]["type"], "PERMANENT", "{envelope}");

    let how = json!({ "url": "/", "headers": { "authorization": "${NEVER_SET}" } });
    let envelope = call(&service.runtime(how, "read_only"), "ask", json!({ "id": "a" })).await;
    assert_eq!(envelope["error"]["type"], "INTERNAL", "{envelope}");
    assert!(!envelope.to_string().contains("NEVER_SET"), "{envelope}");
}

/// A host name that resolves to this machine is not an allowed address.
#[tokio::test]
async fn a_private_address_behind_a_name_is_refused() {
    let service = Service { origin: "http://localhost.localdomain:1".to_owned(), seen: Arc::default() };
    let envelope =
        call(&service.runtime(json!({ "url": "/" }), "read_only"), "ask", json!({ "id": "a" })).await;
    assert_eq!(envelope["ok"], false);
}
