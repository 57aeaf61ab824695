//! Servers over HTTP that send too much: reading stops at the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use toolwright_contract::ErrorKind;
use toolwright_imports::{Import, Pins};

use super::support::{far_deadline, handler, import, offer, settings};

/// Far more than any limit.
const FLOOD_BYTES: usize = 64 << 20;
/// More than the limit of a message and all socket buffers.
const MAX_SENT_BYTES: usize = 16 << 20;

/// How a request is answered.
enum Reply {
    Result(Value),
    /// A result as JSON text, in a body of this media type.
    Text(&'static str, &'static str),
    /// The connection is closed without a response.
    Nothing,
    /// A response with this head and start, which goes on for [`FLOOD_BYTES`].
    Flood {
        status: &'static str,
        media_type: &'static str,
        start: &'static str,
    },
}

/// A server whose replies to a listing and a call are given.
struct HostileServer {
    url: String,
    requests: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

type Listing = fn(usize) -> Reply;

const JSON_FLOOD: Reply = Reply::Flood {
    status: "200 OK",
    media_type: "application/json",
    start: r#"{"jsonrpc":"2.0","result":{"x":""#,
};
const EVENT_FLOOD: Reply = Reply::Flood {
    status: "200 OK",
    media_type: "text/event-stream",
    start: r#"data: {"jsonrpc":"2.0","result":{"x":""#,
};
const ERROR_FLOOD: Reply = Reply::Flood {
    status: "400 Bad Request",
    media_type: "application/json",
    start: r#"{"jsonrpc":"2.0","error":{"x":""#,
};

impl HostileServer {
    /// `listing` gets the number of listings before.
    async fn start(listing: Listing, call: fn() -> Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = Self { url, requests: Arc::default(), sent: Arc::default() };
        let (requests, sent) = (Arc::clone(&server.requests), Arc::clone(&server.sent));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (requests, sent) = (Arc::clone(&requests), Arc::clone(&sent));
                tokio::spawn(async move {
                    // The client may close the connection at any time.
                    let _ = answer(stream, listing, call, &requests, &sent).await;
                });
            }
        });
        server
    }

    fn import(&self) -> Import {
        let limits = json!({ "message_kb": 64, "tools": 10, "pages": 5, "list_kb": 16 });
        import(settings(json!({ "name": "fix", "url": self.url, "limits": limits })))
    }

    /// The error of a listing.
    async fn listing_error(&self) -> String {
        self.import().definitions().await.unwrap_err()
    }

    fn listings(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn assert_reading_stopped(&self) {
        let sent = self.sent.load(Ordering::SeqCst);
        assert!(sent < MAX_SENT_BYTES, "{sent} bytes were read");
    }
}

/// Answers one request.
async fn answer(
    stream: TcpStream,
    listing: Listing,
    call: fn() -> Reply,
    requests: &AtomicUsize,
    sent: &AtomicUsize,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reply = match request["method"].as_str().unwrap_or_default() {
        "initialize" => Reply::Result(json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "hostile", "version": "1" },
        })),
        "tools/list" => listing(requests.fetch_add(1, Ordering::SeqCst)),
        "tools/call" => call(),
        "server/discover" => return close(&mut stream, "404 Not Found").await,
        // Notifications, and GET.
        _ if body.is_empty() => return close(&mut stream, "405 Method Not Allowed").await,
        _ => return close(&mut stream, "202 Accepted").await,
    };
    match reply {
        Reply::Result(result) => send(&mut stream, &request, "application/json", &result.to_string()).await,
        Reply::Text(media_type, result) => send(&mut stream, &request, media_type, result).await,
        Reply::Nothing => Ok(()),
        Reply::Flood { status, media_type, start } => {
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\nconnection: close\r\n\r\n{start}"
            );
            stream.write_all(head.as_bytes()).await?;
            let piece = [b'x'; 1 << 16];
            for _ in 0..FLOOD_BYTES / piece.len() {
                stream.write_all(&piece).await?;
                sent.fetch_add(piece.len(), Ordering::SeqCst);
            }
            Ok(())
        }
    }
}

async fn send(
    stream: &mut BufReader<TcpStream>,
    request: &Value,
    media_type: &str,
    result: &str,
) -> std::io::Result<()> {
    let reply = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]);
    let body = if media_type == "text/event-stream" { format!("data: {reply}\n\n") } else { reply };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes()).await
}

async fn close(stream: &mut BufReader<TcpStream>, status: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await
}

fn page(tools: usize, description: &str, next: Option<&str>) -> Reply {
    let tools: Vec<Value> = (0..tools).map(|number| offer(&format!("tool{number}"), description)).collect();
    let mut page = json!({ "tools": tools });
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    Reply::Result(page)
}

fn no_call() -> Reply {
    Reply::Result(json!({ "content": [] }))
}

#[tokio::test]
async fn a_body_that_does_not_end_is_not_read_to_its_end() {
    for flood in [|_| JSON_FLOOD, |_| EVENT_FLOOD, |_| ERROR_FLOOD] as [Listing; 3] {
        let server = HostileServer::start(flood, no_call).await;
        assert_eq!(
            server.listing_error().await,
            "the MCP server `fix` sent a message of more than 64 KiB; if that is right, raise `message_kb` in its \
             `[mcp_servers.limits]`"
        );
        server.assert_reading_stopped();
    }
}

#[tokio::test]
async fn a_result_that_does_not_end_fails_its_call() {
    for flood in [|| JSON_FLOOD, || EVENT_FLOOD] as [fn() -> Reply; 2] {
        let server = HostileServer::start(|_| page(1, "Does something.", None), flood).await;
        let import = server.import();
        let mut pins = Pins::default();
        pins.accept("fix", import.definitions().await.unwrap());
        let failure = handler(&import, &pins, "tool0").call(json!({}), far_deadline()).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Permanent);
        // The server may have run the call.
        assert!(failure.partial_side_effects && !failure.retryable);
        assert!(failure.message.contains("`fix`") && failure.message.contains("`message_kb`"), "{failure:?}");
        server.assert_reading_stopped();
    }
}

#[tokio::test]
async fn a_call_without_a_response_may_have_had_side_effects() {
    let server = HostileServer::start(|_| page(1, "Does something.", None), || Reply::Nothing).await;
    let import = server.import();
    let mut pins = Pins::default();
    pins.accept("fix", import.definitions().await.unwrap());
    let failure = handler(&import, &pins, "tool0").call(json!({}), far_deadline()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Transient);
    assert!(failure.retryable && failure.partial_side_effects, "{failure:?}");
}

#[tokio::test]
async fn a_server_that_stays_within_its_limits_is_called() {
    let call = || Reply::Result(json!({ "content": [], "structuredContent": { "ok": true } }));
    let server = HostileServer::start(|_| page(10, "Does something.", None), call).await;
    let import = server.import();
    let mut pins = Pins::default();
    pins.accept("fix", import.definitions().await.unwrap());
    let success = handler(&import, &pins, "tool9").call(json!({}), far_deadline()).await.unwrap();
    assert_eq!(*success.data, json!({ "ok": true }));
}

#[tokio::test]
async fn whole_numbers_of_a_result_are_not_rounded() {
    const RESULT: &str =
        r#"{"content":[],"structuredContent":{"total":123456789012345678901,"part":9007199254740993}}"#;
    let bodies: [fn() -> Reply; 2] =
        [|| Reply::Text("application/json", RESULT), || Reply::Text("text/event-stream", RESULT)];
    for body in bodies {
        let server = HostileServer::start(|_| page(1, "Does something.", None), body).await;
        let import = server.import();
        let mut pins = Pins::default();
        pins.accept("fix", import.definitions().await.unwrap());
        let success = handler(&import, &pins, "tool0").call(json!({}), far_deadline()).await.unwrap();
        let exact = json!({ "total": "123456789012345678901", "part": 9_007_199_254_740_993_u64 });
        assert_eq!(*success.data, exact);
    }
}

#[tokio::test]
async fn pages_that_do_not_end_are_refused() {
    let server = HostileServer::start(|number| page(1, "", Some(&number.to_string())), no_call).await;
    let error = server.listing_error().await;
    assert!(
        error.contains("`fix` lists its tools on more than 5 pages") && error.contains("`pages`"),
        "{error}"
    );
    assert_eq!(server.listings(), 5);
}

#[tokio::test]
async fn a_repeated_cursor_is_refused() {
    let server = HostileServer::start(|_| page(1, "", Some("again")), no_call).await;
    let error = server.listing_error().await;
    assert_eq!(error, "the MCP server `fix` lists the same page of its tools again");
    assert_eq!(server.listings(), 2);
}

#[tokio::test]
async fn too_many_tools_are_refused() {
    let server = HostileServer::start(|number| page(6, "", Some(&number.to_string())), no_call).await;
    let error = server.listing_error().await;
    assert!(error.contains("`fix` lists more than 10 tools") && error.contains("`tools`"), "{error}");
    assert_eq!(server.listings(), 2);
}

#[tokio::test]
async fn a_listing_that_is_too_large_is_refused() {
    let listing = |number: usize| page(2, &"x".repeat(4000), Some(&number.to_string()));
    let server = HostileServer::start(listing, no_call).await;
    let error = server.listing_error().await;
    assert!(
        error.contains("`fix` lists tools of more than 16 KiB") && error.contains("`list_kb`"),
        "{error}"
    );
    assert_eq!(server.listings(), 2);
}

#[tokio::test]
async fn a_cursor_counts_for_the_size_of_a_listing() {
    let listing = |number: usize| page(0, "", Some(&format!("{number}{}", "x".repeat(8000))));
    let server = HostileServer::start(listing, no_call).await;
    assert!(server.listing_error().await.contains("`list_kb`"));
    assert_eq!(server.listings(), 3);
}

/// A server that answers every request with this head.
async fn server_that_answers(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:secret@{}/mcp?key=secret", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                line.clear();
            }
            let response = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_described_in_plain_sentences() {
    let unused =
        format!("http://{}/mcp", TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap());
    let mut cases = vec![(unused, "connection refused at http://127.0.0.1:")];
    for (head, expected) in [
        ("401 Unauthorized", "/mcp answers 401: set `headers = { authorization = "),
        (
            "401 Unauthorized\r\nwww-authenticate: Bearer",
            "/mcp answers 401: set `headers = { authorization = ",
        ),
        ("403 Forbidden", "/mcp answers 403: set `headers"),
        ("404 Not Found", "/mcp answers 404: there is no MCP at this path"),
        ("307 Temporary Redirect", "/mcp answers 307: redirects are not followed"),
        ("503 Service Unavailable", "/mcp answers 503: the server has failed"),
        ("200 OK\r\ncontent-type: text/html", "/mcp answers with text/html instead of JSON"),
    ] {
        cases.push((server_that_answers(head).await, expected));
    }
    for (url, expected) in cases {
        let error = import(settings(json!({ "name": "fix", "url": url }))).definitions().await.unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!error.contains("secret") && !error.contains("::"), "{error}");
    }
}
