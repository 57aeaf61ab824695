//! MCP over stdio with raw lines: invalid ones, and a host that does not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::Semaphore;
use toolwright_orchestrator::Orchestrator;
use toolwright_server::mcp::{HostOptions, serve_stdio};

use super::support::{orchestrator, wait_until};

struct RawHost {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl RawHost {
    /// A host after `initialize`, over a pipe with this capacity.
    async fn initialized(orchestrator: Orchestrator, bytes: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(bytes);
        tokio::spawn(async move {
            serve_stdio(orchestrator, HostOptions::default(), tokio::io::split(theirs)).await.unwrap();
        });
        let (read, write) = tokio::io::split(ours);
        let mut raw = Self { lines: BufReader::new(read).lines(), write };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "raw", "version": "1" } });
        raw.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string())
            .await;
        assert_eq!(raw.receive().await["id"], 0);
        raw.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
        raw
    }

    async fn send(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }
}

fn fixture() -> (Orchestrator, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    (orchestrator(&runs, &permits), runs, permits)
}

#[tokio::test]
async fn a_host_that_does_not_read_its_progress_does_not_delay_its_call() {
    let (orchestrator, runs, permits) = fixture();
    let mut raw = RawHost::initialized(orchestrator.clone(), 1024).await;
    let steps: Vec<f64> = (1..=60).map(|step| f64::from(step) / 60.0).collect();
    let params = json!({ "name": "read", "arguments": { "progress": steps, "wait": true },
        "_meta": { "progressToken": "p" } });
    raw.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string())
        .await;
    wait_until(|| runs.load(Ordering::SeqCst) == 1).await;
    permits.add_permits(1);
    wait_until(|| orchestrator.metrics().iter().any(|tool| tool.tool == "read" && tool.calls == 1)).await;
}

#[tokio::test]
async fn invalid_lines_get_an_error_and_the_session_continues() {
    let (orchestrator, ..) = fixture();
    let mut raw = RawHost::initialized(orchestrator, 1 << 16).await;
    for line in ["hello", "{\"jsonrpc\": \"2.0\", ", "\u{7f}"] {
        raw.send(line).await;
        let answer = raw.receive().await;
        assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32700), None), "{line}");
    }
    raw.send("{\"id\": 7}").await;
    let answer = raw.receive().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(7)));
    let duplicate = r#"{"name":"echo","arguments":{"message":"a","message":"b"}}"#;
    raw.send(&format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{duplicate}}}"#)).await;
    let answer = raw.receive().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(9)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("`message` is given twice"), "{answer}");
    raw.send("").await;
    raw.send("{\"jsonrpc\": \"2.0\", \"method\": \"$/of_another_protocol\"}").await;
    raw.send("{\"jsonrpc\": \"2.0\", \"id\": 8, \"method\": \"ping\"}").await;
    assert_eq!(raw.receive().await["id"], 8);
}
