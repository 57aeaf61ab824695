//! The result of `tools/call`: one type, serialized as it is for a plain call, and turned into the library's type for
//! any other.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde::Serialize;
use serde_json::{Map, Value};
use toolwright_contract::{Envelope, Meta};
use toolwright_providers::mcp::{CallResult, TextContent, call_result};

use super::catalog::CatalogTool;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallReply<'a> {
    /// Only since 2026-07-28. The library removes it in its replies to clients of older revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<&'static str>,
    #[serde(flatten)]
    result: CallResult<'a>,
    #[serde(rename = "_meta")]
    meta: ReplyMeta<'a>,
}

#[derive(Serialize)]
struct ReplyMeta<'a> {
    #[serde(rename = "toolwright/meta")]
    call: CallMeta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallMeta<'a> {
    #[serde(flatten)]
    more: &'a Map<String, Value>,
    execution_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_version: Option<&'a str>,
    registry_version: &'a str,
    duration: u64,
}

impl<'a> CallReply<'a> {
    /// `failure` is the model's form of a failed envelope; `message` is one that an earlier call left for this turn.
    pub fn new(
        tool: Option<&CatalogTool>,
        envelope: &'a Envelope,
        failure: impl FnOnce() -> Value,
        message: Option<String>,
    ) -> Self {
        let output = tool.map(|tool| tool.output).unwrap_or_default();
        let outcome = match &envelope.outcome {
            Ok(success) => Ok(&*success.data),
            Err(_) => Err(Cow::Owned(failure())),
        };
        let mut result = call_result(output, outcome);
        result.content.extend(message.map(|message| TextContent::from(Cow::Owned(message))));
        Self { result_type: None, result, meta: ReplyMeta { call: CallMeta::new(&envelope.meta) } }
    }

    /// The library's type.
    pub fn into_result(mut self) -> Result<CallToolResult, ErrorData> {
        self.result_type = Some("complete");
        serde_json::to_value(&self).and_then(serde_json::from_value).map_err(|error| {
            tracing::error!("could not convert the reply to a call: {error}");
            ErrorData::internal_error("The result could not be written.", None)
        })
    }
}

impl<'a> CallMeta<'a> {
    fn new(meta: &'a Meta) -> Self {
        Self {
            more: &meta.more,
            execution_id: &meta.execution_id,
            tool_version: meta.tool_version.as_deref(),
            registry_version: &meta.registry_version,
            duration: meta.duration,
        }
    }
}
