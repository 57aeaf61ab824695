//! From an envelope to the result of `tools/call`.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::Value;
use toolwright_contract::{Envelope, Meta, Success};

use super::catalog::Row;
use super::declare::WRAP;

/// Where a result tells its call's id, versions and time.
pub(super) const META: &str = "toolwright/meta";

/// What a call gave: the data as text for the model and as structured content for programs.
pub(super) fn success(row: Option<&Row>, success: Success, meta: &Meta) -> CallToolResult {
    let data = Arc::unwrap_or_clone(success.data);
    let text = match &data {
        Value::String(text) => text.clone(),
        data => serde_json::to_string(data).unwrap_or_default(),
    };
    let is_fitting = data.is_object() && !row.is_some_and(|row| row.wraps);
    let structured =
        if is_fitting { data } else { Value::Object(JsonObject::from_iter([(WRAP.to_owned(), data)])) };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result.meta = Some(told(meta));
    result
}

/// Why a call failed, in the words that every model reads.
pub(super) fn failure(row: Option<&Row>, words: Value, meta: &Meta) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(words.to_string())]);
    // A tool that says what its data looks like must not answer with anything else.
    if row.is_none_or(|row| row.tool.output_schema.is_none()) {
        result.structured_content = Some(words);
    }
    result.meta = Some(told(meta));
    result
}

fn told(meta: &Meta) -> MetaObject {
    let mut inner = meta.more.clone();
    inner.insert("executionId".to_owned(), meta.execution_id.as_str().into());
    if let Some(version) = &meta.tool_version {
        inner.insert("toolVersion".to_owned(), version.as_str().into());
    }
    inner.insert("registryVersion".to_owned(), meta.registry_version.as_str().into());
    inner.insert("duration".to_owned(), meta.duration.into());
    MetaObject(JsonObject::from_iter([(META.to_owned(), Value::Object(inner))]))
}

/// An envelope of one's own, without a copy where nobody else has it.
pub(super) fn unshared(envelope: Arc<Envelope>) -> Envelope {
    Arc::try_unwrap(envelope).unwrap_or_else(|shared| (*shared).clone())
}
