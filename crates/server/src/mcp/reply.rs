//! The result of `tools/call`: one type, serialized as it is for a plain call, and turned into the library's type for
//! any other.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, Meta};
use toolwright_providers::mcp::RESULT_MEMBER;

use super::catalog::CatalogTool;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallReply<'a> {
    /// Only since 2026-07-28. The library removes it in its replies to clients of older revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<&'static str>,
    /// The data as text for the model, and a message of an earlier call.
    content: Vec<TextContent<'a>>,
    /// The data for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Cow<'a, Value>>,
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: ReplyMeta<'a>,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: Cow<'a, str>,
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
        let (text, structured_content) = match &envelope.outcome {
            Ok(success) => {
                let data = &*success.data;
                let is_wrapped = !data.is_object() || tool.is_some_and(|tool| tool.wraps_output);
                let structured = match is_wrapped {
                    true => Cow::Owned(json!({ RESULT_MEMBER: data })),
                    false => Cow::Borrowed(data),
                };
                // Text stays as it is; other data becomes JSON.
                let text = data.as_str().map_or_else(|| data.to_string().into(), Cow::Borrowed);
                (text, Some(structured))
            }
            Err(_) => {
                let failure = failure();
                let text = Cow::Owned(failure.to_string());
                // Structured content must conform to the declared output, so a failure has none then.
                let has_schema = tool.is_some_and(|tool| tool.declaration.output_schema.is_some());
                (text, (!has_schema).then_some(Cow::Owned(failure)))
            }
        };
        let texts = [Some(text), message.map(Cow::Owned)];
        Self {
            result_type: None,
            content: texts.into_iter().flatten().map(|text| TextContent { r#type: "text", text }).collect(),
            structured_content,
            is_error: !envelope.is_ok(),
            meta: ReplyMeta { call: CallMeta::new(&envelope.meta) },
        }
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
