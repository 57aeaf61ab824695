//! A model with OpenAI's Chat Completions API that streams as fast as its script says. Each chunk is `t`, the time at
//! which it was sent, and a space.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::Result;

/// How a model answers.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// The time to its first chunk.
    pub first: Duration,
    /// The time between two chunks.
    pub interval: Duration,
    pub chunks: usize,
}

static BEGIN: OnceLock<Instant> = OnceLock::new();

/// In nanoseconds since the first call.
pub fn now() -> u64 {
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Starts a model.
pub async fn start(script: Script) -> Result<SocketAddr> {
    now();
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let listener = socket.listen(1024)?;
    let address = listener.local_addr()?;
    let script = Arc::new(script);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let script = Arc::clone(&script);
            // A client may go away at any time.
            tokio::spawn(async move { _ = serve(stream, &script).await });
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream, script: &Script) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(length) = read_head(&mut stream).await? {
        stream.read_exact(&mut vec![0; length]).await?;
        tokio::time::sleep(script.first).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut text = head.to_owned();
        for number in 0..script.chunks {
            if number > 0 {
                tokio::time::sleep(script.interval).await;
            }
            let content = format!("t{:012} ", now());
            text += &frame(&format!(
                r#"data: {{"id":"c","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{"content":"{content}"}}}}]}}"#
            ));
            stream.write_all(text.as_bytes()).await?;
            text.clear();
        }
        text += &frame(r#"data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
        text += &frame("data: [DONE]");
        text += "0\r\n\r\n";
        stream.write_all(text.as_bytes()).await?;
    }
    Ok(())
}

fn frame(line: &str) -> String {
    format!("{:x}\r\n{line}\n\n\r\n", line.len() + 2)
}

/// The length of the body; `None` when the connection is closed.
async fn read_head(stream: &mut BufReader<TcpStream>) -> Result<Option<usize>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            return Ok(Some(length));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
}
