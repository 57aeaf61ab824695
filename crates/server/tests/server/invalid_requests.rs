//! Malformed, oversized and slow requests: each gets an error response, and the server keeps serving.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Client, Response};
use super::support::{TestServer, wait_until};

async fn assert_serving(client: &Client) {
    let envelope = client.call("echo", json!({ "args": { "message": "still there" } })).await;
    assert_eq!(envelope["ok"], true);
}

fn post(client: &Client, length: usize) -> Vec<u8> {
    let host = client.address;
    format!("POST /v1/tools/echo/call HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
        .into_bytes()
}

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let server = TestServer::start().await;
    let bodies: [&[u8]; 12] = [
        b"{",
        b"{\"args\":",
        b"nul",
        b"\xff\xfe{\"args\":{}}",
        b"{\"args\":{\"message\":\"\xff\"}}",
        b"{\"args\":{\"message\":\"\\ud800\"}}",
        b"{\"args\":{\"message\":\"a\0b\"}}",
        b"\xef\xbb\xbf{\"args\":{}}",
        b"{\"args\":{}} trailing",
        b"{\"args\":{\"n\":1e999}}",
        &[b'['; 100_000],
        b"\0\0\0\0",
    ];
    for body in bodies {
        let mut bytes = post(&server.client, body.len());
        bytes.extend_from_slice(body);
        let response = Response::parse(&server.client.send_raw(&bytes).await);
        response.problem(400, "");
    }
    assert_serving(&server.client).await;
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn arrays_are_refused_where_objects_belong() {
    let server = TestServer::start().await;
    let session = server.session("text").await;
    for (path, body) in [
        ("/v1/tools/echo/call".to_owned(), json!([{ "message": "hi" }, null, null, null])),
        ("/v1/sessions".to_owned(), json!(["text", null])),
        (format!("/v1/sessions/{session}/turn"), json!([])),
        ("/v1/confirmations/conf_1/approve".to_owned(), json!([null, false])),
        ("/v1/confirmations/conf_1/reject".to_owned(), json!([null])),
    ] {
        server.client.post(&path, body).await.problem(400, "invalid type: sequence, expected an object");
    }
    assert_eq!(server.runs(), 0);
}

#[tokio::test]
async fn whole_numbers_are_kept_exact_or_refused() {
    let server = TestServer::start().await;
    for number in ["9007199254740993", "-9007199254740993", "9223372036854775807", "18446744073709551615"] {
        let body = format!(r#"{{"args":{{"number":{number}}}}}"#);
        let response = server.client.request("POST", "/v1/tools/read/call", &body).await;
        response.expect(200);
        assert!(response.text().contains(&format!(r#""number":{number}"#)), "{}", response.text());
    }
    for number in ["18446744073709551616", "-9223372036854775809", "100000000000000000000000000001"] {
        let body = format!(r#"{{"args":{{"number":{number}}}}}"#);
        let response = server.client.request("POST", "/v1/tools/read/call", &body).await;
        response.problem(400, &format!("the whole number {number} needs more than 64 bits"));
    }
    let body = r#"{"args":{"number":6.02e23}}"#;
    server.client.request("POST", "/v1/tools/read/call", body).await.expect(200);
}

#[tokio::test]
async fn large_bodies_are_refused_by_length_and_while_reading() {
    let server = TestServer::with(|options| options.limits.body_bytes = 64 << 10, None).await;
    let refused = Response::parse(&server.client.send_raw(&post(&server.client, 1 << 40)).await);
    refused.problem(413, "65536 bytes");
    let mut bytes = post(&server.client, 4 << 20);
    bytes.resize(bytes.len() + (4 << 20), b' ');
    Response::parse(&server.client.send_raw(&bytes).await).problem(413, "65536 bytes");
    let host = server.client.address;
    let mut chunked = format!("POST /v1/tools/echo/call HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..300 {
        chunked.extend_from_slice(b"400\r\n");
        chunked.resize(chunked.len() + 1024, b' ');
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    Response::parse(&server.client.send_raw(&chunked).await).problem(413, "65536 bytes");
    let mut fits = post(&server.client, 60 << 10);
    fits.extend_from_slice(br#"{"args":{"message":"x"}}"#);
    fits.resize(post(&server.client, 60 << 10).len() + (60 << 10), b' ');
    assert_eq!(Response::parse(&server.client.send_raw(&fits).await).expect(200)["ok"], true);
    assert_serving(&server.client).await;
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_time_out() {
    let change = |options: &mut toolwright_server::Options| {
        options.limits.body_timeout = Duration::from_millis(200);
        options.limits.header_timeout = Duration::from_millis(200);
    };
    let server = TestServer::with(change, None).await;
    for (begin, drip) in [(post(&server.client, 1000), b"{"), (b"POST /v1/tools".to_vec(), b"/")] {
        let mut stream = TcpStream::connect(server.client.address).await.unwrap();
        stream.write_all(&begin).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let dripping = tokio::spawn(async move {
            while writer.write_all(drip).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(20), reader.read_to_end(&mut answer)).await.unwrap();
        Response::parse(&answer).problem(408, "took longer");
        dripping.abort();
    }
    let mut idle = TcpStream::connect(server.client.address).await.unwrap();
    let mut nothing = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), idle.read_to_end(&mut nothing)).await.unwrap().unwrap();
    assert!(nothing.is_empty(), "an idle connection is closed without a response");
    assert_serving(&server.client).await;
}

#[tokio::test]
async fn truncated_bodies_do_not_affect_other_requests() {
    let server = TestServer::start().await;
    let mut bytes = post(&server.client, 1000);
    bytes.extend_from_slice(b"{\"args\":");
    let answer = server.client.send_raw_and_close(&bytes).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
    for _ in 0..50 {
        let mut stream = TcpStream::connect(server.client.address).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    }
    assert_serving(&server.client).await;
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn wrong_methods_and_unknown_paths_get_a_hint() {
    let server = TestServer::start().await;
    let cases = [
        ("GET", "/v1/tools/echo/call", 405, "POST"),
        ("PUT", "/v1/tools", 405, "GET, HEAD"),
        ("PATCH", "/v1/sessions/x", 405, "GET, HEAD, DELETE"),
        ("DELETE", "/healthz", 405, "GET, HEAD"),
        ("OPTIONS", "/v1/tools", 405, "GET, HEAD"),
        ("BREW", "/v1/tools", 405, "GET, HEAD"),
    ];
    for (method, path, status, allow) in cases {
        let response = server.client.request(method, path, "").await;
        response.problem(status, allow);
        assert_eq!(response.header("allow"), Some(allow), "{method} {path}");
    }
    for path in [
        "/v1",
        "/v1/",
        "/v1/tools/",
        "/v1/tools/echo/",
        "/V1/TOOLS",
        "/.env",
        "/admin.php",
        "/v1/tools/%ff",
        "/v1/tools/../../etc/passwd",
        "/v1//tools",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/tools/echo/call/more",
        "/mcp%00",
    ] {
        server.client.get(path).await.problem(404, "openapi.json");
    }
    assert_serving(&server.client).await;
}

#[tokio::test]
async fn heads_that_are_not_http_are_refused() {
    let server = TestServer::start().await;
    let heads: [&[u8]; 9] = [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/tools/echo/call HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/tools/echo/call HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /v1/tools/echo/call HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzzz\r\n",
        b"GET /v1/tools HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
    ];
    for head in heads {
        let answer = server.client.send_raw_and_close(head).await;
        let text = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || text.starts_with("HTTP/1.1 4") || text.starts_with("HTTP/1.1 505"),
            "{head:?}: {text}"
        );
    }
    let smuggled = b"POST /v1/tools/echo/call HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nPOST /v1/tools/write/call HTTP/1.1\r\nhost: localhost\r\n\r\n";
    server.client.send_raw_and_close(smuggled).await;
    assert_eq!(server.runs(), 0, "the smuggled request ran");
    assert_serving(&server.client).await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = TestServer::start().await;
    server.client.with("x-large", "x".repeat(20 << 10)).get("/v1/tools").await.problem(431, "16384 bytes");
    server.client.get(&format!("/v1/tools?x={}", "x".repeat(20 << 10))).await.problem(431, "16384 bytes");
    let many =
        (0..100).fold(server.client.clone(), |client, number| client.with(&format!("x-{number}"), "x"));
    many.get("/v1/tools").await.problem(431, "64 headers");
    let host = server.client.address;
    let mut huge = format!("GET /v1/tools HTTP/1.1\r\nhost: {host}\r\nx: ").into_bytes();
    huge.resize(huge.len() + (1 << 20), b'x');
    let answer = server.client.send_raw_and_close(&huge).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    assert_serving(&server.client).await;
}

#[tokio::test]
async fn one_principal_cannot_take_all_running_requests() {
    let server = TestServer::with(|options| options.limits.requests_per_principal = 1, None).await;
    let (mira, jon) = (server.client_with_key("mira", &[]), server.client_with_key("jon", &[]));
    let body = json!({ "args": { "wait": true } }).to_string();
    let mut waiting = mira.send("POST", "/v1/tools/read/call", &body).await;
    wait_until(|| server.runs() == 1).await;
    let refused = mira.get("/v1/tools").await;
    refused.problem(429, "1 running requests, and may have no more (`[server] max_requests_per_principal`)");
    assert_eq!(refused.header("retry-after"), Some("1"));
    jon.get("/v1/tools").await.expect(200);
    server.permits.add_permits(1);
    let mut bytes = Vec::new();
    waiting.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(Response::parse(&bytes).status, 200);
    mira.get("/v1/tools").await.expect(200);
}

#[tokio::test]
async fn requests_above_the_limit_are_refused_with_retry_after() {
    let server = TestServer::with(|options| options.limits.requests = 2, None).await;
    let body = json!({ "args": { "wait": true } }).to_string();
    let mut waiting = Vec::new();
    for number in 1..=2 {
        waiting.push(server.client.send("POST", "/v1/tools/read/call", &body).await);
        wait_until(|| server.runs() == number).await;
    }
    let refused = server.client.request("POST", "/v1/tools/read/call", &body).await;
    refused.problem(429, "2 running requests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(server.client.get("/healthz").await.status, 200);
    server.permits.add_permits(2);
    for mut stream in waiting {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(Response::parse(&bytes).status, 200);
    }
    assert_serving(&server.client).await;
}
