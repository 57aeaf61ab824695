//! A small HTTP server on loopback, for errors that a real service cannot be made to return.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Includes the query.
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

#[derive(Debug)]
pub enum Reply {
    Response(u16, String),
    /// Never responds.
    None,
}

/// Serves until the test ends. Returns its URL.
pub async fn serve(respond: impl Fn(Request) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let respond = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let respond = Arc::clone(&respond);
            tokio::spawn(async move { converse(stream, &*respond).await });
        }
    });
    format!("http://{address}")
}

async fn converse(mut stream: TcpStream, respond: &(impl Fn(Request) -> Reply + Sync)) {
    while let Some(request) = read(&mut stream).await {
        match respond(request) {
            Reply::Response(status, body) => {
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::None => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8(bytes.drain(..end + 4).collect()).unwrap();
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: BTreeMap<_, _> = lines.filter_map(header).collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { method, path, headers, body: String::from_utf8(bytes).unwrap() })
}
