//! MCP for programs of the same user on this machine: lines over a loopback connection, as over stdio. `toolwright mcp`
//! uses it when a server has the store. The first line of a connection is `{"key": …, "mode": …}`, and is answered by
//! `{"ok": true}` or `{"error": …}`.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use toolwright_contract::Mode;
use toolwright_contract::object::ObjectOnly;
use toolwright_orchestrator::Orchestrator;

use super::stdio::{HostOptions, serve_stdio};
use crate::auth::LocalKey;

const MAX_FIRST_LINE_BYTES: u64 = 1024;
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine {
    key: String,
    mode: Mode,
}

/// Serves every connection whose first line has the key, each as an MCP host of its own. Never returns.
pub async fn serve_local(
    listener: TcpListener,
    key: LocalKey,
    orchestrator: Orchestrator,
    options: HostOptions,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (key, orchestrator, options) = (key.clone(), orchestrator.clone(), options.clone());
        tokio::spawn(async move {
            if let Err(error) = serve(stream, &key, orchestrator, options).await {
                tracing::warn!("the connection of a local MCP host failed: {error}");
            }
        });
    }
}

async fn serve(
    stream: TcpStream,
    key: &LocalKey,
    orchestrator: Orchestrator,
    options: HostOptions,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mode = match timeout(FIRST_LINE_TIMEOUT, first_line(&mut read)).await?? {
        Some(first) if key.is(&first.key) => first.mode,
        _ => return Ok(write_line(&mut write, &json!({ "error": "the key is wrong" })).await?),
    };
    write_line(&mut write, &json!({ "ok": true })).await?;
    serve_stdio(orchestrator, HostOptions { mode, ..options }, (read, write)).await
}

async fn first_line(read: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<FirstLine>> {
    let mut line = Vec::new();
    read.take(MAX_FIRST_LINE_BYTES).read_until(b'\n', &mut line).await?;
    Ok(serde_json::from_slice(&line).ok().map(|ObjectOnly(first)| first))
}

async fn write_line(write: &mut (impl AsyncWriteExt + Unpin), value: &Value) -> io::Result<()> {
    write.write_all(format!("{value}\n").as_bytes()).await
}
