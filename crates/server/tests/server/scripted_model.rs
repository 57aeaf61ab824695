//! A model server with OpenAI's Chat Completions API, whose answer is in the last message of the user:
//! `say TEXT`, `call TOOL JSON` (then it repeats the result), `wait` (says a word, and the rest when it gets a permit),
//! `fail STATUS`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// The running model.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    pub address: SocketAddr,
    pub permits: Arc<Semaphore>,
    requests: Arc<AtomicUsize>,
    last_request: Arc<Mutex<Value>>,
}

impl ScriptedModel {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = Self {
            address: listener.local_addr().unwrap(),
            permits: Arc::new(Semaphore::new(0)),
            requests: Arc::default(),
            last_request: Arc::default(),
        };
        let serving = model.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let model = serving.clone();
                tokio::spawn(async move { model.answer(stream).await });
            }
        });
        model
    }

    /// A model whose server does not run.
    pub fn unreachable() -> Self {
        let address = "127.0.0.1:1".parse().unwrap();
        Self {
            address,
            permits: Arc::new(Semaphore::new(0)),
            requests: Arc::default(),
            last_request: Arc::default(),
        }
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The tools of the last request.
    pub fn offered_tools(&self) -> Vec<String> {
        let request = self.last_request.lock().unwrap();
        let names = request["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]["name"]);
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    async fn answer(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let body = read_request(&mut stream).await?;
        *self.last_request.lock().unwrap() = body.clone();
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let messages = body["messages"].as_array()?;
        let start = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
        let said = text_of(&messages[start]["content"]);
        let result = messages[start..].iter().rfind(|message| message["role"] == "tool");
        let (word, rest) = said.split_once(' ').unwrap_or((&said, ""));
        if word == "fail" {
            let text = r#"{"error": {"message": "provider-secret", "code": "x"}}"#;
            let head = format!(
                "HTTP/1.1 {rest} Failed\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            return stream.write_all(format!("{head}{text}").as_bytes()).await.ok();
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.ok()?;
        match (word, result) {
            ("call", None) => {
                let (tool, args) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let function = json!({ "name": tool, "arguments": args });
                let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
                chunk(&mut stream, json!({ "tool_calls": [call] }), None).await?;
                chunk(&mut stream, json!({}), Some("tool_calls")).await?;
            }
            ("call", Some(result)) => {
                let text = format!("The result is {}", text_of(&result["content"]));
                chunk(&mut stream, json!({ "content": text }), None).await?;
                chunk(&mut stream, json!({}), Some("stop")).await?;
            }
            ("wait", _) => {
                chunk(&mut stream, json!({ "content": "begun" }), None).await?;
                self.permits.acquire().await.ok()?.forget();
                chunk(&mut stream, json!({ "content": " ended" }), None).await?;
                chunk(&mut stream, json!({}), Some("stop")).await?;
            }
            _ => {
                chunk(&mut stream, json!({ "content": rest }), None).await?;
                chunk(&mut stream, json!({}), Some("stop")).await?;
            }
        }
        let usage = json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 } });
        stream.write_all(format!("data: {usage}\n\ndata: [DONE]\n\n").as_bytes()).await.ok()
    }
}

async fn chunk(stream: &mut BufReader<TcpStream>, delta: Value, finish: Option<&str>) -> Option<()> {
    let data = json!({ "id": "c", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    stream.write_all(format!("data: {data}\n\n").as_bytes()).await.ok()
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}
