//! The tools' documentation as resources: `tool://<id>/doc`.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use toolwright_orchestrator::{DESCRIBE, Runtime};

use super::catalog::Row;

const MARKDOWN: &str = "text/markdown";
pub(super) const TEMPLATE: &str = "tool://{id}/doc";

/// The document of a tool, if it has one.
pub(super) fn resource(runtime: &Runtime, row: &Row) -> Option<Resource> {
    let id = row.tool.name.as_ref();
    let tool = runtime.toolset().get(id).filter(|_| id != DESCRIBE)?;
    Some(
        Resource::new(format!("tool://{id}/doc"), id)
            .with_description(tool.summary.clone())
            .with_mime_type(MARKDOWN),
    )
}

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(TEMPLATE, "doc")
        .with_description("The documentation of a tool.")
        .with_mime_type(MARKDOWN)
}

/// The tool that a URI is about.
pub(super) fn tool_of(uri: &str) -> Option<&str> {
    uri.strip_prefix("tool://")?.strip_suffix("/doc")
}

pub(super) fn read(runtime: &Runtime, row: &Row, uri: &str) -> Option<ReadResourceResult> {
    let text = runtime.toolset().documentation(&row.tool.name)?;
    let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN);
    Some(ReadResourceResult::new(vec![contents]))
}

pub(super) fn unknown(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("There is no such resource.", Some(json!({ "uri": uri })))
}
