//! A model server that answers by a script. One port speaks the APIs of all providers; the path says which.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::wire_forms::{self, Step};

/// One answer of the script.
#[derive(Clone)]
pub enum Reply {
    /// A whole response.
    Step(Step),
    /// The begin of a response, and then the connection is closed: after this many frames.
    Cut(Step, usize),
    /// The begin of a response; the rest once the semaphore of the server is opened.
    Slow(Step, usize),
    /// An error.
    Status(u16, &'static str, &'static str),
    /// A response of bytes that no API promises.
    Garbage,
    /// The connection is closed without a byte.
    Hangup,
    /// No byte ever comes.
    Silence,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Request {
    pub provider: &'static str,
    pub head: String,
    pub body: Value,
    pub arrived: Instant,
}

#[derive(Clone)]
pub struct ScriptedModel {
    pub address: SocketAddr,
    script: Arc<Mutex<Script>>,
    requests: Arc<Mutex<Vec<Request>>>,
    pub open: Arc<Semaphore>,
}

struct Script {
    replies: VecDeque<Reply>,
    /// The last reply is given again and again.
    repeats: bool,
}

impl ScriptedModel {
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_with(replies, false).await
    }

    /// A model that gives this reply for ever.
    pub async fn repeating(reply: Reply) -> Self {
        Self::start_with([reply], true).await
    }

    async fn start_with(replies: impl IntoIterator<Item = Reply>, repeats: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            script: Arc::new(Mutex::new(Script { replies: replies.into_iter().collect(), repeats })),
            requests: Arc::default(),
            open: Arc::new(Semaphore::new(0)),
        };
        let this = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let this = this.clone();
                tokio::spawn(async move {
                    // The client may go away at any time.
                    let _ = this.serve(stream).await;
                });
            }
        });
        server
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    fn next(&self) -> Reply {
        let mut script = self.script.lock().unwrap();
        match script.repeats {
            true => script.replies.front().cloned().unwrap(),
            false => script.replies.pop_front().unwrap_or(Reply::Status(500, "", "the script has ended")),
        }
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).await? == 0 {
                    return Ok(());
                }
            }
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).await?;
            let provider = provider_of(&head);
            let body: Value = serde_json::from_slice(&body).unwrap();
            wire_forms::check_request(provider, &body);
            self.requests.lock().unwrap().push(Request { provider, head, body, arrived: Instant::now() });
            if !self.reply(provider, stream.get_mut()).await? {
                return Ok(());
            }
        }
    }

    /// False when the connection is to be closed.
    async fn reply(&self, provider: &'static str, stream: &mut TcpStream) -> std::io::Result<bool> {
        let (step, cut, slow) = match self.next() {
            Reply::Step(step) => (step, None, None),
            Reply::Cut(step, frames) => (step, Some(frames), None),
            Reply::Slow(step, frames) => (step, None, Some(frames)),
            Reply::Status(status, headers, body) => {
                let length = body.len();
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
                stream.write_all(head.as_bytes()).await?;
                return Ok(true);
            }
            Reply::Garbage => {
                let body = "<html>data: {not json}</html>\n\ndata: {\"a\":\n\n";
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(head.as_bytes()).await?;
                return Ok(true);
            }
            Reply::Hangup => return Ok(false),
            Reply::Silence => {
                self.open.acquire().await.unwrap().forget();
                return Ok(false);
            }
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
        for (number, frame) in wire_forms::frames(provider, &step).into_iter().enumerate() {
            if cut == Some(number) {
                return Ok(false);
            }
            if slow == Some(number) {
                self.open.acquire().await.unwrap().forget();
            }
            let chunk = format!("{:x}\r\n{frame}\r\n", frame.len());
            stream.write_all(chunk.as_bytes()).await?;
            stream.flush().await?;
        }
        stream.write_all(b"0\r\n\r\n").await?;
        Ok(true)
    }
}

fn provider_of(head: &str) -> &'static str {
    let path = head.split_whitespace().nth(1).unwrap();
    match path {
        "/v1/chat/completions" => "openai-chat",
        "/v1/responses" => "openai-responses",
        "/v1/messages" => "anthropic",
        "/api/chat" => "ollama",
        "/models/test-model:streamGenerateContent?alt=sse" => "gemini",
        other => panic!("no API has the path {other}"),
    }
}
