//! A minimal HTTP/1.1 client, one connection per request, that validates every response against the OpenAPI document.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::openapi;

/// The server's address, and the headers of every request.
#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    headers: Vec<(String, String)>,
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new() }
    }

    pub fn with(&self, name: &str, value: impl Into<String>) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.into()));
        client
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request("GET", path, "").await
    }

    pub async fn delete(&self, path: &str) -> Response {
        self.request("DELETE", path, "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.request("POST", path, &body.to_string()).await
    }

    pub async fn call(&self, tool: &str, body: Value) -> Value {
        self.post(&format!("/v1/tools/{tool}/call"), body).await.expect(200)
    }

    pub async fn request(&self, method: &str, path: &str, body: &str) -> Response {
        let mut stream = self.send(method, path, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        if method == "HEAD" {
            assert!(bytes.ends_with(b"\r\n\r\n"), "a response to HEAD has no body");
        }
        let response = Response::parse(&bytes);
        openapi::check(method, path, &response);
        response
    }

    /// Sends a request and leaves the response to the caller.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let own = |name: &str| self.headers.iter().any(|(own, _)| own == name);
        if !own("host") {
            text += &format!("host: {}\r\n", self.address);
        }
        if !body.is_empty() && !own("content-type") {
            text += "content-type: application/json\r\n";
        }
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Sends the bytes of a request, and reads until the server closes the connection.
    pub async fn send_raw(&self, bytes: &[u8]) -> Vec<u8> {
        self.send_raw_then(bytes, false).await
    }

    /// As [`Self::send_raw`], and closes its own side of the connection.
    pub async fn send_raw_and_close(&self, bytes: &[u8]) -> Vec<u8> {
        self.send_raw_then(bytes, true).await
    }

    async fn send_raw_then(&self, bytes: &[u8], closes: bool) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The server may have closed the connection already.
        let _ = stream.write_all(bytes).await;
        if closes {
            let _ = stream.shutdown().await;
        }
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response).await;
        response
    }
}

impl Response {
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let end = text.find("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
        let head = text[..end].to_owned();
        let status = head[9..12].parse().unwrap();
        let body = bytes[end + 4..].to_vec();
        let response = Self { status, head, body };
        if let Some(length) = response.header("content-length").filter(|_| !response.body.is_empty()) {
            assert_eq!(length, response.body.len().to_string(), "{response:?}");
        }
        response
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body of a response that must have this status; null if it is empty.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}\n{}", self.head, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// A problem of this status, whose detail contains `part`.
    #[track_caller]
    pub fn problem(&self, status: u16, part: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(problem["status"], status);
        assert_eq!(problem["instance"].as_str(), self.header("x-request-id"));
        assert!(problem["type"].as_str().unwrap().starts_with("urn:toolwright:problem:"));
        assert!(problem["detail"].as_str().unwrap().contains(part), "no {part:?} in {problem}");
        problem
    }
}
