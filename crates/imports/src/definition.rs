//! A server's definition of one tool, in a form that can be compared.

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolwright_registry::hex;
use toolwright_registry::json::write_canonical;

/// The part of a tool that a person accepts by pinning it: everything that a model sees or that changes a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The server's hints. They are shown and compared, but never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl Definition {
    pub(crate) fn from_tool(tool: &Tool) -> Self {
        let object = |members: &Map<String, Value>| Value::Object(members.clone());
        Self {
            title: tool.title.clone(),
            description: tool.description.as_deref().unwrap_or_default().to_owned(),
            input_schema: object(&tool.input_schema),
            output_schema: tool.output_schema.as_deref().map(object),
            annotations: tool.annotations.as_ref().and_then(|hints| serde_json::to_value(hints).ok()),
        }
    }

    /// The SHA-256 of the canonical JSON, in hexadecimal.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.canonical_json()))
    }

    pub(crate) fn canonical_json(&self) -> Vec<u8> {
        let mut canonical = Vec::new();
        write_canonical(&serde_json::to_value(self).unwrap_or_default(), &mut canonical);
        canonical
    }

    /// The names of the fields in which two definitions differ.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            ("title", self.title != other.title),
            ("description", self.description != other.description),
            ("inputSchema", self.input_schema != other.input_schema),
            ("outputSchema", self.output_schema != other.output_schema),
            ("annotations", self.annotations != other.annotations),
        ];
        parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
    }
}
