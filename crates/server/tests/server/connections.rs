//! Many connections and streams of one client, and clients that do not read: others are served, and so are health
//! checks.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolwright_server::{Limits, Options};

use super::client::{Client, Response};
use super::support::{TestServer, wait_until};

/// Far less than the timeout of an idle connection.
const SOON: Duration = Duration::from_secs(10);

async fn server_with(change: impl FnOnce(&mut Limits)) -> TestServer {
    TestServer::with(|options: &mut Options| change(&mut options.limits), None).await
}

async fn connect(client: &Client, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(TcpStream::connect(client.address).await.unwrap());
    }
    streams
}

/// Calls that wait in their handlers, each on a connection of its own.
async fn busy(server: &TestServer, count: usize) -> Vec<TcpStream> {
    let body = json!({ "args": { "wait": true } }).to_string();
    let (mut streams, before) = (Vec::new(), server.runs());
    for _ in 0..count {
        streams.push(server.client.send("POST", "/v1/tools/read/call", &body).await);
    }
    wait_until(|| server.runs() == before + count).await;
    streams
}

async fn read_response(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    timeout(SOON, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    Response::parse(&bytes)
}

#[tokio::test]
async fn hundreds_of_connections_wait_to_be_accepted() {
    let server = server_with(|_| {}).await;
    // The server shares this thread, so that it accepts none of them meanwhile.
    let open = |_| std::net::TcpStream::connect(server.client.address).unwrap();
    let waiting: Vec<_> = (0..300).map(open).collect();
    assert_eq!(server.client.get("/healthz").await.status, 200);
    drop(waiting);
}

#[tokio::test]
async fn idle_sockets_make_room_for_new_ones() {
    let server = server_with(|limits| limits.connections = 32).await;
    let mut idle = connect(&server.client, 200).await;
    let call = server.client.call("echo", json!({ "args": { "message": "hi" } }));
    assert_eq!(timeout(SOON, call).await.unwrap()["ok"], true);
    let mut end = Vec::new();
    timeout(SOON, idle[0].read_to_end(&mut end)).await.unwrap().unwrap();
    assert!(end.is_empty(), "the oldest idle connection is closed without a response");
    let (mut newest, host) = (idle.pop().unwrap(), server.client.address);
    newest
        .write_all(format!("GET /v1/tools HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(read_response(newest).await.status, 200, "the newest ones stay open");
}

#[tokio::test]
async fn a_full_server_answers_health_checks_and_refuses_the_rest() {
    for (connections, per_peer) in [(8, 8), (1000, 8)] {
        let server = server_with(|limits| {
            (limits.connections, limits.connections_per_peer) = (connections, per_peer);
        })
        .await;
        let running = busy(&server, 8).await;
        // More than the reserve has: its oldest idle ones are closed.
        let _idle = connect(&server.client, 200).await;
        for path in ["/healthz", "/readyz"] {
            assert_eq!(timeout(SOON, server.client.get(path)).await.unwrap().status, 200, "{path}");
        }
        let refused = timeout(SOON, server.client.get("/v1/tools")).await.unwrap();
        refused.problem(503, "8 from one address");
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.header("connection"), Some("close"));
        server.permits.add_permits(8);
        for stream in running {
            assert_eq!(
                read_response(stream).await.expect(200)["ok"],
                true,
                "running calls are not disturbed"
            );
        }
        assert_eq!(timeout(SOON, server.client.get("/v1/tools")).await.unwrap().status, 200);
    }
}

/// Opens an event stream, and waits for its first bytes.
async fn open_events(client: &Client, session: &str) -> Result<TcpStream, Response> {
    let mut stream = client.send("GET", &format!("/v1/sessions/{session}/events"), "").await;
    let mut bytes = vec![0; 12];
    stream.read_exact(&mut bytes).await.unwrap();
    if bytes.ends_with(b"200") {
        return Ok(stream);
    }
    stream.read_to_end(&mut bytes).await.unwrap();
    Err(Response::parse(&bytes))
}

#[tokio::test]
async fn event_streams_are_limited_per_session_and_principal() {
    let server = server_with(|limits| {
        (limits.streams_per_session, limits.streams_per_principal) = (2, 3);
    })
    .await;
    let (first, second) = (server.session("text").await, server.session("text").await);
    let mut open = Vec::new();
    for session in [&first, &first, &second] {
        open.push(open_events(&server.client, session).await.unwrap());
    }
    let refused = open_events(&server.client, &first).await.unwrap_err();
    refused.problem(429, "the limit is 2 (`[server] max_streams_per_session`)");
    let refused = open_events(&server.client, &second).await.unwrap_err();
    refused.problem(429, "the limit is 3 (`[server] max_streams_per_principal`)");
    open.clear();
    let reopened = async {
        while open_events(&server.client, &first).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, reopened).await.expect("a closed stream is no longer counted");
}

/// Sends messages to a session until one fails, at most as many as given. Returns how many were accepted.
async fn send_messages(server: &TestServer, session: &str, bytes: usize, max: usize) -> usize {
    let message = json!({ "type": "note", "text": "x".repeat(bytes) });
    let (runs, mut sent) = (server.runs(), 0);
    while sent < max {
        let args = json!({ "send": message });
        let envelope = server
            .client
            .call(
                "write",
                json!({ "sessionId": session, "args": args,
            "executionId": format!("call-{runs}-{sent}") }),
            )
            .await;
        if envelope["ok"] == false {
            break;
        }
        sent += 1;
    }
    sent
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_little_memory_and_is_disconnected() {
    let server = server_with(|limits| limits.write_timeout = Duration::from_millis(300)).await;
    let session = server.session("text").await;
    let mut stream = open_events(&server.client, &session).await.unwrap();
    // The sockets' own buffers take a few megabytes, the queue takes one.
    let sent = send_messages(&server, &session, 500_000, 200).await;
    assert!((2..60).contains(&sent), "{sent} messages of 500 kB were accepted");
    // Nothing is read before the deadline has passed; the request for the metrics is a connection, too.
    let connections = async || -> u64 {
        let metrics = server.client.get("/v1/metrics").await.expect(200);
        metrics["http"]["connections"].as_u64().unwrap()
    };
    let disconnected = async {
        while connections().await > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, disconnected).await.expect("the server closes the connection");
    let mut rest = Vec::new();
    // The bytes in the socket buffers, and then a reset or an end without the last chunk.
    let _ = timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.ends_with(b"0\r\n\r\n"));
}

#[tokio::test]
async fn the_streams_of_mcp_count_for_their_principal() {
    let server = server_with(|limits| limits.streams_per_principal = 1).await;
    let session = server.session("text").await;
    let events = open_events(&server.client, &session).await.unwrap();
    let host = server.client.with("accept", super::mcp_http::ACCEPT);
    host.post("/mcp", super::mcp_http::initialize()).await.problem(429, "the limit is 1");
    drop(events);
    let begun = async {
        while host.post("/mcp", super::mcp_http::initialize()).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, begun).await.unwrap();
}

#[tokio::test]
async fn two_host_headers_are_refused() {
    let server = TestServer::start().await;
    let host = server.client.address;
    for second in [host.to_string(), "evil.example".to_owned()] {
        let request =
            format!("GET /v1/tools HTTP/1.1\r\nhost: {host}\r\nhost: {second}\r\nconnection: close\r\n\r\n");
        let response = Response::parse(&server.client.send_raw(request.as_bytes()).await);
        response.problem(400, "one `host` header");
    }
    let _: Value = server.client.get("/v1/tools").await.expect(200);
}
