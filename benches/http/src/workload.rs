//! The calls: a small one, and one with nested arguments and a long result.

use serde_json::{Value, json};

pub struct Workload {
    pub name: &'static str,
    pub tool: &'static str,
    /// The content of every successful response.
    pub expected: &'static str,
}

pub const ALL: [Workload; 2] = [
    Workload { name: "echo", tool: "echo", expected: "quick brown fox" },
    Workload { name: "kb_search", tool: "kb_search", expected: "Ines Halloran" },
];

impl Workload {
    pub fn args(&self) -> Value {
        match self.tool {
            "echo" => message(),
            _ => json!({
                "query": "who founded the lighting studio", "namespace": "studio", "top_k": 3,
                "filters": {
                    "type": "person", "tags": ["founder", "lighting", "active"],
                    "date_range": { "start": "2025-06-01T00:00:00Z", "end": "2026-01-13T10:00:00Z" },
                },
                "return_fields": ["snippet", "metadata", "url"],
            }),
        }
    }
}

pub fn message() -> Value {
    json!({ "message": "The quick brown fox jumps over the lazy dog." })
}

/// The parameters of a tool, which every server declares.
pub fn parameters(tool: &str) -> Value {
    if tool == "echo" {
        return json!({
            "type": "object", "additionalProperties": false, "required": ["message"],
            "properties": { "message": { "type": "string", "description": "Text to echo", "maxLength": 1000 } },
        });
    }
    let time = json!({ "type": "string", "format": "date-time" });
    json!({
        "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": 200 },
            "namespace": { "type": "string", "enum": ["studio", "personal", "public"], "default": "studio" },
            "filters": {
                "type": "object", "additionalProperties": false,
                "properties": {
                    "type": { "type": "string", "enum": ["project", "person", "process", "link", "doc"] },
                    "tags": { "type": "array", "items": { "type": "string", "minLength": 1 }, "maxItems": 5 },
                    "date_range": {
                        "type": "object", "additionalProperties": false, "properties": { "start": time, "end": time },
                    },
                },
            },
            "top_k": { "type": "integer", "minimum": 1, "maximum": 10, "default": 5 },
            "return_fields": {
                "type": "array", "uniqueItems": true,
                "items": { "type": "string", "enum": ["snippet", "full_text", "metadata", "sources", "url"] },
            },
            "include_snippets": { "type": "boolean", "default": true },
        },
    })
}

/// The result of the search.
pub fn found() -> Value {
    let result = |id: &str, title: &str, score: f64, snippet: &str| {
        json!({
            "id": id, "type": "person", "title": title, "score": score, "snippet": snippet, "source_type": "directory",
            "last_updated": "2026-01-10T15:30:00Z", "url": format!("https://lanternfield.example/{id}"),
            "metadata": { "role": "founder", "city": "Berlin" },
        })
    };
    json!({
        "results": [
            result("person:ines_halloran", "Ines Halloran", 0.94,
                "Founder of the studio; light for stages, museums and public places since 2014."),
            result("person:mira_okafor", "Mira Okafor", 0.71,
                "Leads stage automation, and was there when the studio was founded in a former boat shed."),
            result("project:harbour_lights", "Harbour lights", 0.42,
                "The first work of the studio: forty lamps on the eastern harbour, lit for a hundred nights."),
        ],
        "total_found": 3, "query_time_ms": 4,
    })
}
