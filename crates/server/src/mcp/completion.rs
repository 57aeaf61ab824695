//! Completion: tool ids for the URI template of their documentation.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use toolwright_contract::{Mode, Principal};

use super::catalog::Catalog;
use super::tool_docs::URI_TEMPLATE;

pub(super) fn complete(
    catalog: &Catalog,
    mode: Mode,
    principal: &Principal,
    params: &CompleteRequestParams,
) -> CompleteResult {
    let is_tool_docs = matches!(&params.r#ref, Reference::Resource(template) if template.uri == URI_TEMPLATE);
    let mut values = Vec::new();
    if is_tool_docs && params.argument.name == "id" {
        let ids = catalog.visible(mode, principal).map(|tool| tool.declaration.name.to_string());
        let matching = ids.filter(|id| id.starts_with(&params.argument.value));
        values.extend(matching.take(CompletionInfo::MAX_VALUES));
    }
    CompletionInfo::new(values).map(CompleteResult::new).unwrap_or_default()
}
