//! A small HTTP server: records each request and responds with given bytes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

pub(crate) enum Reply {
    /// Writes and waits for the next request.
    Keep(Vec<u8>),
    /// Writes and closes.
    Close(Vec<u8>),
    /// Writes, then sends one byte at a time until the client disconnects.
    Drip(Vec<u8>),
    Silence,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(ip: &str, respond: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (respond, log, count) = (Arc::new(respond), requests.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (respond, log) = (respond.clone(), log.clone());
                tokio::spawn(async move { converse(stream, &*respond, &log).await });
            }
        });
        Self { address, requests, connections }
    }

    /// Sends the same response to every request and closes.
    pub(crate) async fn fixed(ip: &str, response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::start(ip, move |_| Reply::Close(response.clone())).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(crate) async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    respond: &(impl Fn(&str) -> Reply + ?Sized),
    log: &Mutex<Vec<String>>,
) {
    while let Some(request) = read_request(&mut stream).await {
        log.lock().unwrap().push(request.clone());
        match respond(&request) {
            Reply::Keep(bytes) => drop(stream.write_all(&bytes).await),
            Reply::Close(bytes) => {
                drop(stream.write_all(&bytes).await);
                drop(stream.shutdown().await);
                return;
            }
            Reply::Drip(bytes) => {
                drop(stream.write_all(&bytes).await);
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                return;
            }
            Reply::Silence => std::future::pending().await,
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n")
            && body.len() >= content_length(head)
        {
            return Some(whole);
        }
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => text.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

fn content_length(head: &str) -> usize {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-length:"));
    line.and_then(|line| line.split(':').nth(1)).map_or(0, |length| length.trim().parse().unwrap())
}

/// A response with the right `content-length`.
pub(crate) fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(crate) fn hello() -> Vec<u8> {
    reply("200 OK", "content-type: text/plain\r\n", "hello")
}

pub(crate) fn redirect(status: &str, location: &str) -> Vec<u8> {
    reply(status, &format!("location: {location}\r\n"), "")
}

/// A port without a listener, held by the socket so that no other test gets it meanwhile.
pub(crate) fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}
