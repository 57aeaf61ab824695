//! Completion: the ids of tools, for the template of their documentation.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use toolwright_contract::{Mode, Principal};

use super::catalog::Catalog;
use super::documents::TEMPLATE;

pub(super) fn complete(
    catalog: &Catalog,
    mode: Mode,
    principal: &Principal,
    asked: &CompleteRequestParams,
) -> CompleteResult {
    let is_ours = matches!(&asked.r#ref, Reference::Resource(template) if template.uri == TEMPLATE);
    let mut values = Vec::new();
    if is_ours && asked.argument.name == "id" {
        let ids = catalog.visible(mode, principal).map(|row| row.tool.name.to_string());
        values
            .extend(ids.filter(|id| id.starts_with(&asked.argument.value)).take(CompletionInfo::MAX_VALUES));
    }
    CompletionInfo::new(values).map(CompleteResult::new).unwrap_or_default()
}
