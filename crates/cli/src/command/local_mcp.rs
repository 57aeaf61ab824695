//! `toolwright mcp` beside a running server: passes the host's lines on to the server that uses the store.

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use toolwright_contract::Mode;

use super::serve::shutdown_signal;
use crate::output::{self, Failure};
use crate::server_file::ServerFile;

/// Passes lines on until the host or the server ends. False when the server ended first.
pub async fn pass_on(server: &ServerFile, mode: Mode) -> Result<bool> {
    let gone = |error: std::io::Error| {
        let message = format!("the server at {}, which uses the store, does not answer: {error}", server.url);
        Failure::new(message, "look at the server's log, then let the host start this command again")
    };
    let (read, mut write) = TcpStream::connect(server.mcp).await.map_err(gone)?.into_split();
    let mut read = BufReader::new(read);
    let first = json!({ "key": server.key(), "mode": mode });
    write.write_all(format!("{first}\n").as_bytes()).await.map_err(gone)?;
    let mut line = String::new();
    read.read_line(&mut line).await.map_err(gone)?;
    let answer: Value = serde_json::from_str(&line).unwrap_or_default();
    if answer["ok"] != true {
        let reason = answer["error"].as_str().unwrap_or("it gave no reason").to_owned();
        let message = format!("the server at {} refuses this command: {reason}", server.url);
        return Err(Failure::new(message, "restart the server").into());
    }
    let (mut input, mut output) = (tokio::io::stdin(), tokio::io::stdout());
    let to_server = async {
        let copied = tokio::io::copy(&mut input, &mut write).await;
        // The server ends the session and closes the connection.
        let _ = write.shutdown().await;
        copied
    };
    let to_host = async {
        let copied = tokio::io::copy(&mut read, &mut output).await;
        output.flush().await.and(copied)
    };
    tokio::pin!(to_server, to_host);
    tokio::select! {
        sent = &mut to_server => {
            sent.map_err(|error| anyhow!("the connection with the server failed: {error}"))?;
            to_host.await?;
            Ok(true)
        }
        received = &mut to_host => {
            received?;
            output::message(format_args!("the server at {} has closed the connection", server.url));
            Ok(false)
        }
        () = shutdown_signal() => Ok(true),
    }
}
