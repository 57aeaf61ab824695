//! N realistic tool directories, always the same: 40 % retrieval with nested filters, 40 % actions, 20 % utilities,
//! documentation of 2 to 6 KB each.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

const DOMAINS: &[(&str, &[&str])] = &[
    ("crm", &["contact", "account", "deal", "lead"]),
    ("calendar", &["event", "slot", "room"]),
    ("billing", &["invoice", "payment", "refund"]),
    ("wiki", &["page", "space", "revision"]),
    ("tickets", &["ticket", "comment", "incident"]),
    ("inventory", &["item", "warehouse", "batch"]),
    ("shipping", &["parcel", "route", "label"]),
    ("studio", &["project", "brief", "asset"]),
];
const WORDS: &[&str] = &[
    "record",
    "system",
    "customer",
    "request",
    "session",
    "status",
    "review",
    "team",
    "owner",
    "change",
    "result",
    "field",
    "value",
    "filter",
    "window",
    "policy",
    "budget",
    "agent",
    "message",
    "reference",
    "source",
    "evidence",
    "region",
    "account",
    "period",
    "handoff",
    "queue",
    "approval",
    "summary",
    "detail",
    "history",
    "limit",
    "retry",
];

/// A small generator of random numbers: the same seed, the same tools, on any machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }

    fn sentence(&mut self, words: usize) -> String {
        let words: Vec<&str> = (0..words).map(|_| self.pick(WORDS)).collect();
        let text = words.join(" ");
        text[..1].to_uppercase() + &text[1..] + "."
    }
}

struct Tool {
    category: &'static str,
    verb: &'static str,
    metadata: Value,
    properties: Value,
    required: &'static str,
    example: Value,
    handler: String,
}

/// Writes `count` tools below `root`, which must not exist yet.
pub fn generate(root: &Path, count: usize) -> io::Result<()> {
    for index in 0..count {
        let mut dice = Dice(20_260_113_u64.wrapping_mul(1_000_003).wrapping_add(index as u64));
        let (domain, nouns) = DOMAINS[dice.roll(DOMAINS.len())];
        let noun = dice.pick(nouns);
        let tool = match index % 10 {
            0..4 => retrieval(&mut dice, noun),
            4..8 => action(&mut dice, noun),
            _ => utility(&mut dice),
        };
        write(&root.join(format!("{domain}-{}-{noun}-{index:05}", tool.verb)), &mut dice, &tool)?;
    }
    Ok(())
}

fn write(dir: &Path, dice: &mut Dice, tool: &Tool) -> io::Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let description =
        format!("{} of category {}. Returns structured results.", name.replace('-', " "), tool.category);
    let mut schema = json!({
        "toolId": name.replace('-', "_"), "version": format!("1.{}.{}", dice.roll(10), dice.roll(20)),
        "description": description, "category": tool.category,
    });
    for (field, value) in tool.metadata.as_object().into_iter().flatten() {
        schema[field] = value.clone();
    }
    schema["parameters"] = json!({
        "type": "object", "additionalProperties": false, "required": [tool.required], "properties": tool.properties,
    });
    fs::create_dir_all(dir)?;
    fs::write(dir.join("schema.json"), serde_json::to_string_pretty(&schema)?)?;
    fs::write(dir.join("doc_summary.md"), format!("{description} {}\n", dice.sentence(8)))?;
    fs::write(dir.join("doc.md"), documentation(dice, &name, &description, &tool.example)?)?;
    fs::write(dir.join("handler.js"), &tool.handler)
}

fn documentation(dice: &mut Dice, name: &str, description: &str, example: &Value) -> io::Result<String> {
    let target = 2100 + dice.roll(3700);
    let sections = [
        "Summary",
        "Preconditions",
        "Postconditions",
        "Invariants",
        "Failure Modes",
        "Examples",
        "Common Mistakes (Do Not)",
    ];
    let per_section = target / sections.len();
    let mut text = format!("# {name}\n\n{description}\n");
    for section in sections {
        let start = text.len();
        text += &format!("\n## {section}\n");
        if section == "Examples" {
            text +=
                &format!("\n### A typical call\n```json\n{}\n```\n", serde_json::to_string_pretty(example)?);
        }
        while text.len() - start < per_section {
            text += &format!("- {}\n", dice.sentence(12));
        }
    }
    Ok(text)
}

fn retrieval(dice: &mut Dice, noun: &str) -> Tool {
    let mut filters = json!({
        "status": {"type": "string", "description": format!("{noun} status"), "enum": ["open", "closed", "draft", "active"]},
        "tags": {"type": "array", "description": "All of these", "items": {"type": "string", "minLength": 1, "maxLength": 40}, "maxItems": 5},
        "date_range": {"type": "object", "description": "When it was last changed", "additionalProperties": false, "properties": {
            "start": {"type": "string", "format": "date-time"}, "end": {"type": "string", "format": "date-time"}}},
    });
    if dice.roll(2) == 0 {
        filters["owner"] = json!({"type": "string", "format": "email", "description": "The owner's address"});
    }
    if dice.roll(3) == 0 {
        filters["parent_id"] = json!({"type": "string", "format": "uuid"});
    }
    let records: Vec<Value> = (0..10)
        .map(|at| json!({"id": format!("{noun}:{at}"), "title": dice.sentence(3), "text": dice.sentence(12), "tags": ["alpha"]}))
        .collect();
    Tool {
        category: "retrieval",
        verb: dice.pick(&["search", "find", "list", "lookup"]),
        metadata: json!({"sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
            "allowedModes": ["text", "voice"], "latencyBudgetMs": 800}),
        properties: json!({
            "query": {"type": "string", "description": "What to look for", "minLength": 1, "maxLength": 200},
            "region": {"type": "string", "description": "Where the data lies", "enum": ["eu", "us", "apac"], "default": "eu"},
            "filters": {"type": "object", "description": "Narrow the search", "additionalProperties": false, "properties": filters},
            "top_k": {"type": "integer", "description": "How many", "minimum": 1, "maximum": 10, "default": 5},
            "return_fields": {"type": "array", "items": {"type": "string", "enum": ["snippet", "metadata", "url"]}, "uniqueItems": true},
            "include_snippets": {"type": "boolean", "default": true},
        }),
        required: "query",
        example: json!({"query": format!("latest {noun}"), "filters": {"status": "open", "tags": ["alpha"],
            "date_range": {"start": "2025-06-01T00:00:00Z"}}, "top_k": 3, "return_fields": ["snippet", "url"]}),
        handler: RETRIEVAL.replace("RECORDS_JSON", &Value::Array(records).to_string()),
    }
}

fn action(dice: &mut Dice, noun: &str) -> Tool {
    Tool {
        category: "action",
        verb: dice.pick(&["create", "update", "cancel", "assign"]),
        metadata: json!({"sideEffects": "writes", "idempotent": false, "requiresConfirmation": true,
            "allowedModes": ["text"], "latencyBudgetMs": 2000}),
        properties: json!({
            "title": {"type": "string", "description": "A short title", "minLength": 3, "maxLength": 120},
            "priority": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal"},
            "due_at": {"type": "string", "format": "date-time", "description": "When it is due"},
            "participants": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"type": "object", "additionalProperties": false,
                "required": ["email"], "properties": {"email": {"type": "string", "format": "email"},
                "role": {"type": "string", "enum": ["owner", "editor", "viewer"], "default": "viewer"}}}},
            "amount": {"type": "object", "additionalProperties": false, "required": ["value", "currency"], "properties": {
                "value": {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000}, "currency": {"type": "string", "pattern": "^[A-Z]{3}$"}}},
        }),
        required: "title",
        example: json!({"title": format!("{noun} for the kick-off"), "priority": "high", "due_at": "2026-02-01T09:30:00+01:00",
            "participants": [{"email": "a@example.com", "role": "owner"}], "amount": {"value": 129.5, "currency": "EUR"}}),
        handler: ACTION.replace("NOUN", noun),
    }
}

fn utility(dice: &mut Dice) -> Tool {
    Tool {
        category: "utility",
        verb: dice.pick(&["extract", "format", "convert"]),
        metadata: json!({"sideEffects": "none", "idempotent": true, "requiresConfirmation": false,
            "allowedModes": ["text", "voice"], "latencyBudgetMs": 200}),
        properties: json!({
            "text": {"type": "string", "minLength": 1, "maxLength": 5000},
            "locale": {"type": "string", "pattern": "^[a-z]{2}(-[A-Z]{2})?$", "default": "en"},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["email", "url", "date"]}, "uniqueItems": true, "minItems": 1},
        }),
        required: "text",
        example: json!({"text": "Write to ann@example.com by 2026-02-01.", "kinds": ["email", "date"]}),
        handler: UTILITY.to_owned(),
    }
}

const RETRIEVAL: &str = include_str!("retrieval.js");
const ACTION: &str = include_str!("action.js");
const UTILITY: &str = include_str!("utility.js");
