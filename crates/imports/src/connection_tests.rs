//! Of the connection: a server that greets and then says nothing.

use std::sync::Arc;

use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

use super::list;
use crate::transport::Client;

/// Greets, and answers nothing after that.
async fn mute(stream: DuplexStream) {
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let asked: Value = serde_json::from_str(&line).unwrap();
        if asked["method"] == "initialize" {
            let result = json!({
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "mute", "version": "1" },
            });
            let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
            write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_list_its_tools_is_given_up() {
    let (ours, theirs) = duplex(1 << 16);
    tokio::spawn(mute(theirs));
    let client = Client { changes: Arc::default() };
    let running = client.serve_with_lifecycle(split(ours), ClientLifecycleMode::Initialize).await.unwrap();
    assert_eq!(list(&running).await.unwrap_err(), "it does not list its tools within 20 s");
}
