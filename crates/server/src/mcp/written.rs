//! The response to a plain call, written without the library's types: the same members in the same order.

use rmcp::ErrorData;
use rmcp::model::RequestId;
use serde_json::Value;
use toolwright_contract::json::{write_plainly, write_string, write_value};
use toolwright_contract::{Envelope, Meta};

use super::catalog::Row;
use super::declare::WRAP;
use super::result::META;

/// The answer to a call that gave no envelope.
pub(super) fn failed(id: &RequestId, error: &ErrorData) -> Vec<u8> {
    serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}

/// What came of a call, and whom it is told.
pub(super) struct Told<'a> {
    pub row: &'a Row,
    pub id: &'a RequestId,
    pub envelope: &'a Envelope,
    /// A message that a tool left for this moment.
    pub left: Option<String>,
    pub era: Era,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Sessions,
    Stateless,
}

/// The response; `words` is what a model reads of a failure.
pub(super) fn text(answer: &Told<'_>, words: impl FnOnce() -> Value) -> Vec<u8> {
    let Told { row, id, envelope, left, era } = answer;
    let mut told = Vec::with_capacity(512);
    let failure;
    let (data, has_structure) = match &envelope.outcome {
        Ok(success) => (&*success.data, true),
        Err(_) => {
            failure = words();
            // A tool that says what its data looks like must not answer with anything else.
            (&failure, row.tool.output_schema.is_none())
        }
    };
    write_value(data, &mut told);
    let mut out = Vec::with_capacity(256 + 3 * told.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    write_plainly(id, &mut out);
    out.extend_from_slice(b",\"result\":{");
    if *era == Era::Stateless {
        out.extend_from_slice(b"\"resultType\":\"complete\",");
    }
    out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
    match data {
        Value::String(_) => out.extend_from_slice(&told),
        // It was made of texts.
        _ => write_string(std::str::from_utf8(&told).unwrap_or_default(), &mut out),
    }
    if let Some(message) = left {
        out.extend_from_slice(b"},{\"type\":\"text\",\"text\":");
        write_string(message, &mut out);
    }
    out.extend_from_slice(b"}]");
    if has_structure {
        write_structure(&told, envelope.is_ok() && (row.wraps || !data.is_object()), &mut out);
    }
    out.extend_from_slice(if envelope.is_ok() { b",\"isError\":false" } else { b",\"isError\":true" });
    out.extend_from_slice(b",\"_meta\":{");
    write_string(META, &mut out);
    out.push(b':');
    write_meta(&envelope.meta, &mut out);
    out.extend_from_slice(b"}}}");
    out
}

fn write_structure(data: &[u8], wraps: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"structuredContent\":");
    if wraps {
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(WRAP.as_bytes());
        out.extend_from_slice(b"\":");
    }
    out.extend_from_slice(data);
    if wraps {
        out.push(b'}');
    }
}

fn write_meta(meta: &Meta, out: &mut Vec<u8>) {
    out.push(b'{');
    for (name, value) in &meta.more {
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"executionId\":");
    write_string(&meta.execution_id, out);
    if let Some(version) = &meta.tool_version {
        out.extend_from_slice(b",\"toolVersion\":");
        write_string(version, out);
    }
    out.extend_from_slice(b",\"registryVersion\":");
    write_string(&meta.registry_version, out);
    out.extend_from_slice(b",\"duration\":");
    write_plainly(&meta.duration, out);
    out.push(b'}');
}
