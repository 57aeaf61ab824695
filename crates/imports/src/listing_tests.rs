//! A server that initializes and then never responds.

use std::sync::Arc;

use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

use super::list_tools;
use crate::connect_problem::HttpProblem;
use crate::limits::LimitExceeded;
use crate::settings::ServerSettings;
use crate::transport::{McpClient, MessageHandler};

/// Responds to `initialize` and to nothing else.
async fn serve_initialize_only(stream: DuplexStream) {
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let request: Value = serde_json::from_str(&line).unwrap();
        if request["method"] == "initialize" {
            let result = json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "silent", "version": "1" },
            });
            let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
            write.write_all(format!("{response}\n").as_bytes()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn listing_tools_has_a_timeout() {
    let (ours, theirs) = duplex(1 << 16);
    tokio::spawn(serve_initialize_only(theirs));
    let handler = MessageHandler { list_changes: Arc::default() };
    let client = handler.serve_with_lifecycle(split(ours), ClientLifecycleMode::Initialize).await.unwrap();
    let client = McpClient::new(client, LimitExceeded::new("silent"), HttpProblem::default()).await;
    let server: ServerSettings = serde_json::from_value(json!({ "name": "silent" })).unwrap();
    assert_eq!(
        list_tools(&client, &server).await.unwrap_err(),
        "the MCP server `silent` did not list its tools within 20 s; if that is right, raise `list_s` in its \
         `[mcp_servers.limits]`"
    );
}
