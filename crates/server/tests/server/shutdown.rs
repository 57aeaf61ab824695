//! Graceful shutdown: running calls finish.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::client::Response;
use super::support::{TestServer, wait_until};

#[tokio::test]
async fn shutdown_waits_for_running_calls() {
    let mut server = TestServer::start().await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let mut stream = server.client.send("POST", "/v1/tools/read/call", &body).await;
    // Idle connections do not delay it.
    let idle = tokio::net::TcpStream::connect(server.client.address).await.unwrap();
    wait_until(|| server.runs() == 1).await;
    server.request_shutdown();
    while tokio::net::TcpStream::connect(server.client.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.permits.add_permits(1);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(Response::parse(&bytes).expect(200)["ok"], true);
    assert!(server.wait_for_shutdown().await);
    drop(idle);
}

#[tokio::test]
async fn shutdown_waits_for_a_write_whose_caller_disconnected() {
    let mut server = TestServer::start().await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let stream = server.client.send("POST", "/v1/tools/write/call", &body).await;
    wait_until(|| server.runs() == 1).await;
    drop(stream);
    server.request_shutdown();
    let permits = server.permits.clone();
    let orchestrator = server.orchestrator.clone();
    let wait_for_shutdown = tokio::spawn(server.wait_for_shutdown());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!wait_for_shutdown.is_finished());
    permits.add_permits(1);
    assert!(wait_for_shutdown.await.unwrap());
    assert_eq!(orchestrator.metrics()[0].calls, 1);
}

#[tokio::test]
async fn shutdown_gives_up_after_its_limit() {
    let mut server = TestServer::with(|options| options.shutdown = Duration::from_millis(100), None).await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let _stream = server.client.send("POST", "/v1/tools/write/call", &body).await;
    wait_until(|| server.runs() == 1).await;
    server.request_shutdown();
    assert!(!server.wait_for_shutdown().await);
}
