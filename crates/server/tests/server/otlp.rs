//! The spans that a collector receives.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use toolwright_server::otlp::{Collector, Exporter};

use super::mcp_host::{REVISIONS, TestHost, connect_http, params};
use super::mcp_http::{ACCEPT, initialize};
use super::support::{TestServer, orchestrator_with};

/// A collector that passes on the requests it receives: head and body.
pub async fn collector() -> (String, mpsc::UnboundedReceiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let (head, body) = loop {
                stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let wanted = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if body.len() >= wanted.parse::<usize>().unwrap() {
                    break (head.to_owned(), serde_json::from_str(body).unwrap());
                }
            };
            sender.send((head, body)).unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                .await
                .unwrap();
        }
    });
    (address, receiver)
}

/// Everything that was exported: the head of the first request, its resource, and the spans in their order. A batch may
/// have been split, since spans are also sent after a while.
pub fn exported(sent: &mut mpsc::UnboundedReceiver<(String, Value)>) -> (String, Value, Vec<Value>) {
    let requests: Vec<(String, Value)> = std::iter::from_fn(|| sent.try_recv().ok()).collect();
    let groups = requests.iter().map(|(_, body)| &body["resourceSpans"][0]);
    let spans = groups.clone().flat_map(|group| group["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    (requests[0].0.clone(), groups.clone().next().unwrap()["resource"].clone(), spans.collect())
}

pub fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(&Value::Null, |attribute| &attribute["value"]["stringValue"])
}

#[tokio::test]
async fn every_call_is_a_span_in_its_callers_trace() {
    let (endpoint, mut sent) = collector().await;
    let headers = vec![("x-key".to_owned(), "k".to_owned())];
    let exporter = Exporter::start(Collector { endpoint, service: "support".to_owned(), headers }).unwrap();
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let orchestrator = orchestrator_with(&runs, &permits, |builder| builder.observer(exporter.clone()));
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let client = server.client.with("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    let outer = json!({ "args": { "call": "echo", "with": { "message": "hi" } } });
    client.post("/v1/tools/write/call", outer).await.expect(200);
    client.post("/v1/tools/echo/call", json!({ "args": { "massage": "hi" } })).await.expect(200);
    exporter.flush().await;
    let (head, resource, spans) = exported(&mut sent);
    assert!(head.starts_with("POST /v1/traces ") && head.contains("x-key: k"), "{head}");
    assert_eq!(resource["attributes"][0]["value"]["stringValue"], "support");
    let [inner, outer, refused] = spans.as_slice() else { panic!("{spans:?}") };
    for span in &spans {
        assert_eq!(span["traceId"], trace);
        assert_eq!(attribute(span, "gen_ai.operation.name"), "execute_tool");
    }
    assert_eq!((&inner["name"], &outer["name"]), (&json!("execute_tool echo"), &json!("execute_tool write")));
    assert_eq!(outer["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(inner["parentSpanId"], outer["spanId"]);
    assert_eq!(outer["status"]["code"], 0);
    assert_eq!(attribute(refused, "error.type"), "VALIDATION");
    assert_eq!(
        (&refused["status"]["code"], attribute(refused, "toolwright.end")),
        (&json!(2), &json!("refused"))
    );
    // Spans contain neither arguments nor results.
    assert!(!json!(spans).to_string().contains("hi\""), "{spans:?}");
}

#[tokio::test]
async fn a_call_over_mcp_belongs_to_the_trace_of_its_request() {
    let (endpoint, mut sent) = collector().await;
    let collector = Collector { endpoint, service: "support".to_owned(), headers: Vec::new() };
    let exporter = Exporter::start(collector).unwrap();
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let orchestrator = orchestrator_with(&runs, &permits, |builder| builder.observer(exporter.clone()));
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let parent = |digit: &str| format!("00-{}-00f067aa0ba902b7-01", digit.repeat(32));
    for revision in REVISIONS {
        let host = connect_http(server.client.address, None, revision, TestHost::answering(None)).await;
        let mut named = params("echo", json!({ "message": "hi" }));
        named.meta = Some(json!({ "traceparent": parent("a") }).as_object().unwrap().clone().into());
        host.call_tool(named).await.unwrap();
    }
    let client = server.client.with("accept", ACCEPT).with("traceparent", parent("b"));
    let begun = client.post("/mcp", initialize()).await;
    let client = client.with("mcp-session-id", begun.header("mcp-session-id").unwrap());
    client.post("/mcp", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let call = json!({ "name": "echo", "arguments": { "message": "hi" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call });
    assert_eq!(client.post("/mcp", call).await.status, 200);
    exporter.flush().await;
    let (_, _, spans) = exported(&mut sent);
    let traces: Vec<_> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces, [&*"a".repeat(32), &*"a".repeat(32), &*"b".repeat(32)]);
    assert!(spans.iter().all(|span| span["parentSpanId"] == "00f067aa0ba902b7"), "{spans:?}");
}

#[tokio::test]
async fn an_unreachable_collector_fails_no_call() {
    let collector = Collector {
        endpoint: "http://127.0.0.1:1".to_owned(),
        service: "support".to_owned(),
        headers: Vec::new(),
    };
    let exporter = Exporter::start(collector).unwrap();
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let orchestrator = orchestrator_with(&runs, &permits, |builder| builder.observer(exporter.clone()));
    let server = TestServer::with_orchestrator(orchestrator, runs, permits).await;
    let envelope =
        server.client.post("/v1/tools/echo/call", json!({ "args": { "message": "hi" } })).await.expect(200);
    assert_eq!(envelope["ok"], true);
    exporter.flush().await;
}
