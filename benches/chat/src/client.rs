//! A client that notes when each chunk of an answer arrives. It reads the model and the server in the same way: it
//! looks for the times in the stream, and parses nothing else.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Result;
use crate::model::now;

/// `t` and twelve digits.
const TIME_BYTES: usize = 13;
const END: &[u8] = b"\r\n0\r\n\r\n";

/// One answer.
#[derive(Debug)]
pub struct Answer {
    /// From the request to the first chunk, in nanoseconds.
    pub first: u64,
    /// From the model to the client, in nanoseconds: each chunk but the first.
    pub chunks: Vec<u64>,
}

/// A connection that is kept.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    address: SocketAddr,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address })
    }

    /// Asks the model.
    pub async fn ask(&mut self) -> Result<Answer> {
        let body = r#"{"model":"scripted","messages":[{"role":"user","content":"Go"}],"stream":true}"#;
        self.post("/v1/chat/completions", body).await
    }

    /// Sends a message to a chat of the server.
    pub async fn say(&mut self, chat: &str, message: usize) -> Result<Answer> {
        let parts = r#"[{"type":"text","text":"Go"}]"#;
        let body = format!(
            r#"{{"id":"{chat}","trigger":"submit-message","messages":[{{"id":"m{message}","role":"user","parts":{parts}}}]}}"#
        );
        self.post("/api/chat", &body).await
    }

    async fn post(&mut self, path: &str, body: &str) -> Result<Answer> {
        let (address, length) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let sent = now();
        self.stream.write_all(request.as_bytes()).await?;
        let (mut text, mut read) = (Vec::new(), 0);
        let mut answer = Answer { first: 0, chunks: Vec::new() };
        loop {
            let mut bytes = [0; 16 << 10];
            let count = self.stream.read(&mut bytes).await?;
            let arrived = now();
            text.extend_from_slice(&bytes[..count]);
            while let Some((time, end)) = next_time(&text[read..]) {
                read += end;
                match answer.first {
                    0 => answer.first = arrived - sent,
                    _ => answer.chunks.push(arrived.saturating_sub(time)),
                }
            }
            if text.ends_with(END) && answer.first > 0 {
                return Ok(answer);
            }
            let has_failed = text.len() > 12 && !text.starts_with(b"HTTP/1.1 200");
            if count == 0 || has_failed {
                return Err(format!("unexpected answer: {}", String::from_utf8_lossy(&text)).into());
            }
        }
    }
}

/// The next time in a text, and the position after it.
fn next_time(text: &[u8]) -> Option<(u64, usize)> {
    let is_time = |window: &&[u8]| window[0] == b't' && window[1..].iter().all(u8::is_ascii_digit);
    let windows = text.windows(TIME_BYTES).enumerate();
    let (at, found) = windows.into_iter().find(|(_, window)| is_time(window))?;
    let time = std::str::from_utf8(&found[1..]).ok()?.parse().ok()?;
    Some((time, at + TIME_BYTES))
}
