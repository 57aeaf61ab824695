//! Graceful shutdown: what runs is finished.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::client::Response;
use super::support::{Served, until};

#[tokio::test]
async fn a_call_that_runs_is_finished_and_answered() {
    let mut served = Served::start().await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let mut stream = served.client.send("POST", "/v1/tools/read/call", &body).await;
    // Idle connections do not hold it up.
    let idle = tokio::net::TcpStream::connect(served.client.address).await.unwrap();
    until(|| served.runs() == 1).await;
    served.tell_to_stop();
    while tokio::net::TcpStream::connect(served.client.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    served.open.add_permits(1);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(Response::parse(&bytes).expect(200)["ok"], true);
    assert!(served.stopped().await);
    drop(idle);
}

#[tokio::test]
async fn a_write_whose_caller_has_gone_away_is_finished_too() {
    let mut served = Served::start().await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let stream = served.client.send("POST", "/v1/tools/write/call", &body).await;
    until(|| served.runs() == 1).await;
    drop(stream);
    served.tell_to_stop();
    let open = served.open.clone();
    let orchestrator = served.orchestrator.clone();
    let stopped = tokio::spawn(served.stopped());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!stopped.is_finished());
    open.add_permits(1);
    assert!(stopped.await.unwrap());
    assert_eq!(orchestrator.metrics()[0].calls, 1);
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let mut served = Served::with(|options| options.shutdown = Duration::from_millis(100), None).await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let _stream = served.client.send("POST", "/v1/tools/write/call", &body).await;
    until(|| served.runs() == 1).await;
    served.tell_to_stop();
    assert!(!served.stopped().await);
}
