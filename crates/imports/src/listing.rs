//! Lists the tools of a server, page by page and within the limits of a listing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use rmcp::model::PaginatedRequestParams;
use tokio::time::timeout;

use crate::connect_problem::describe_request;
use crate::definition::Definition;
use crate::limits::exceeded;
use crate::settings::ServerSettings;
use crate::transport::McpClient;

/// The definitions of all tools, by name. The error is for the operator.
pub(crate) async fn list_tools(
    client: &McpClient,
    server: &ServerSettings,
) -> Result<BTreeMap<String, Definition>, String> {
    let listing = client.limit_exceeded.guard(read_pages(client, server));
    match timeout(server.limits.list_timeout(), listing).await {
        Ok(Ok(definitions)) => definitions,
        Ok(Err(exceeded)) => Err(exceeded.to_string()),
        Err(_) => {
            let what = format_args!("did not list its tools within {} s", server.limits.list_s);
            Err(exceeded(&server.name, what, "list_s"))
        }
    }
}

async fn read_pages(
    client: &McpClient,
    server: &ServerSettings,
) -> Result<BTreeMap<String, Definition>, String> {
    let limits = &server.limits;
    let too_much = |what: &dyn Display, setting| Err(exceeded(&server.name, what, setting));
    let mut definitions = BTreeMap::new();
    let mut cursors = BTreeSet::new();
    let (mut tools, mut bytes, mut cursor) = (0, 0, None);
    for _ in 0..limits.pages {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = client.list_tools(Some(page)).await;
        let page = page.map_err(|error| {
            let cause = client.problem.get().unwrap_or_else(|| describe_request(&error));
            format!("could not list its tools: {cause}")
        })?;
        tools += page.tools.len();
        if tools > limits.tools {
            return too_much(&format_args!("lists more than {} tools", limits.tools), "tools");
        }
        for tool in &page.tools {
            let definition = Definition::from_tool(tool);
            bytes += tool.name.len() + definition.canonical_json().len();
            definitions.insert(tool.name.to_string(), definition);
        }
        bytes += page.next_cursor.as_ref().map_or(0, String::len);
        if bytes > limits.list_bytes() {
            return too_much(&format_args!("lists tools of more than {} KiB", limits.list_kb), "list_kb");
        }
        let Some(next) = page.next_cursor else { return Ok(definitions) };
        if !cursors.insert(next.clone()) {
            return Err(format!("the MCP server `{}` lists the same page of its tools again", server.name));
        }
        cursor = Some(next);
    }
    too_much(&format_args!("lists its tools on more than {} pages", limits.pages), "pages")
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
