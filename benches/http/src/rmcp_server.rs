//! A plain MCP server on the library that Toolwright uses: stateless, JSON responses, typed parameters.

use std::sync::{Arc, OnceLock};

use axum::serve::ListenerExt;
use chrono::{DateTime, Utc};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{servers, workload};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EchoArgs {
    #[schemars(length(max = 1000))]
    message: String,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Namespace {
    #[default]
    Studio,
    Personal,
    Public,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Project,
    Person,
    Process,
    Link,
    Doc,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Field {
    Snippet,
    FullText,
    Metadata,
    Sources,
    Url,
}

#[allow(dead_code, reason = "not read: the result is a constant")]
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DateRange {
    start: Option<DateTime<Utc>>,
    end: Option<DateTime<Utc>>,
}

#[allow(dead_code, reason = "not read: the result is a constant")]
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filters {
    r#type: Option<Kind>,
    #[schemars(length(max = 5))]
    tags: Option<Vec<String>>,
    date_range: Option<DateRange>,
}

#[allow(dead_code, reason = "not read: the result is a constant")]
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    #[schemars(length(min = 1, max = 200))]
    query: String,
    #[serde(default)]
    #[schemars(skip)]
    namespace: Namespace,
    filters: Option<Filters>,
    #[schemars(range(min = 1, max = 10))]
    top_k: Option<u32>,
    return_fields: Option<Vec<Field>>,
    include_snippets: Option<bool>,
}

static FOUND: OnceLock<Value> = OnceLock::new();

#[derive(Clone)]
struct Plain {
    tool_router: Arc<ToolRouter<Plain>>,
}

#[tool_router]
impl Plain {
    #[tool(description = "Return the message unchanged.")]
    async fn echo(&self, Parameters(args): Parameters<EchoArgs>) -> String {
        json!({ "message": args.message }).to_string()
    }

    #[tool(description = "Search the knowledge base. Returns ranked evidence with source citations.")]
    async fn kb_search(&self, Parameters(_args): Parameters<SearchArgs>) -> String {
        FOUND.get_or_init(workload::found).to_string()
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Plain {}

#[tokio::main]
pub async fn serve() -> crate::Result<()> {
    let router = Arc::new(Plain::tool_router());
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None);
    let service: StreamableHttpService<Plain, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(Plain { tool_router: Arc::clone(&router) }),
        Arc::default(),
        config,
    );
    let app = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", servers::port()?)).await?;
    axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), app).await?;
    Ok(())
}
