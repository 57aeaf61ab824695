//! The documentation of tools as resources: `tool://<id>/doc`.

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompletionInfo, ReadResourceResult, Reference, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;
use toolwright_orchestrator::{DESCRIBE, Runtime};

use super::catalog::CatalogTool;

const MARKDOWN: &str = "text/markdown";
const URI_TEMPLATE: &str = "tool://{id}/doc";

/// The resource of a tool's documentation; `reg_describe` has none.
pub(super) fn resource(runtime: &Runtime, tool: &CatalogTool) -> Option<Resource> {
    let id = tool.declaration.name.as_ref();
    let tool = runtime.toolset().get(id).filter(|_| id != DESCRIBE)?;
    Some(
        Resource::new(format!("tool://{id}/doc"), id)
            .with_description(tool.summary.clone())
            .with_mime_type(MARKDOWN),
    )
}

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(URI_TEMPLATE, "doc")
        .with_description("The documentation of a tool.")
        .with_mime_type(MARKDOWN)
}

/// Completes the id in the URI template.
pub(super) fn complete<'a>(
    visible: impl Iterator<Item = &'a CatalogTool>,
    params: &CompleteRequestParams,
) -> Vec<String> {
    let is_id = matches!(&params.r#ref, Reference::Resource(template) if template.uri == URI_TEMPLATE)
        && params.argument.name == "id";
    let ids = visible.map(|tool| tool.declaration.name.to_string());
    let matching = ids.filter(|id| is_id && id.starts_with(&params.argument.value));
    matching.take(CompletionInfo::MAX_VALUES).collect()
}

/// The tool id in a URI.
pub(super) fn tool_id(uri: &str) -> Option<&str> {
    uri.strip_prefix("tool://")?.strip_suffix("/doc")
}

pub(super) fn read(runtime: &Runtime, tool: &CatalogTool, uri: &str) -> Option<ReadResourceResult> {
    let text = runtime.toolset().documentation(&tool.declaration.name)?;
    let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN);
    Some(ReadResourceResult::new(vec![contents]))
}

pub(super) fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("There is no resource `{uri}`."), Some(json!({ "uri": uri })))
}
