//! A host at a pipe that does as it likes: raw lines, or no reading at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::Semaphore;
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;
use toolwright_server::mcp::{Prompts, serve_pipe};

use super::support::{orchestrator, until};

struct Raw {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl Raw {
    /// A pipe that holds so many bytes, after the greeting.
    async fn greeted(orchestrator: Orchestrator, bytes: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(bytes);
        tokio::spawn(async move {
            serve_pipe(orchestrator, Prompts::default(), Mode::Text, tokio::io::split(theirs)).await.unwrap();
        });
        let (read, write) = tokio::io::split(ours);
        let mut raw = Self { lines: BufReader::new(read).lines(), write };
        let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "raw", "version": "1" } });
        raw.say(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": greeting }).to_string(),
        )
        .await;
        assert_eq!(raw.hear().await["id"], 0);
        raw.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
        raw
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }
}

fn set_up() -> (Orchestrator, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (runs, open) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    (orchestrator(&runs, &open), runs, open)
}

#[tokio::test]
async fn a_host_that_does_not_read_its_progress_does_not_hold_up_its_call() {
    let (orchestrator, runs, open) = set_up();
    let mut raw = Raw::greeted(orchestrator.clone(), 1024).await;
    let steps: Vec<f64> = (1..=60).map(|step| f64::from(step) / 60.0).collect();
    let params = json!({ "name": "read", "arguments": { "progress": steps, "wait": true },
        "_meta": { "progressToken": "p" } });
    raw.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string())
        .await;
    until(|| runs.load(Ordering::SeqCst) == 1).await;
    open.add_permits(1);
    until(|| orchestrator.metrics().iter().any(|tool| tool.tool == "read" && tool.calls == 1)).await;
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_session_goes_on() {
    let (orchestrator, ..) = set_up();
    let mut raw = Raw::greeted(orchestrator, 1 << 16).await;
    for line in ["hello", "{\"jsonrpc\": \"2.0\", ", "\u{7f}"] {
        raw.say(line).await;
        let answer = raw.hear().await;
        assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32700), None), "{line}");
    }
    raw.say("{\"id\": 7}").await;
    let answer = raw.hear().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(7)));
    raw.say("").await;
    raw.say("{\"jsonrpc\": \"2.0\", \"method\": \"$/of_another_protocol\"}").await;
    raw.say("{\"jsonrpc\": \"2.0\", \"id\": 8, \"method\": \"ping\"}").await;
    assert_eq!(raw.hear().await["id"], 8);
}
