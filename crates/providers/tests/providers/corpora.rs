//! Real tools and schemas, if `TOOLWRIGHT_CORPORA` names the directory that contains them.

use serde_json::{Value, json};
use toolwright_contract::ToolSpec;
use toolwright_providers::{LossKind, PROVIDERS};

use super::tool;

fn schemas(file: &str, field: &str) -> Vec<(String, Value)> {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: `{file}` is not tested, only the project's own cases are");
        return Vec::new();
    };
    let text = std::fs::read_to_string(std::path::Path::new(&folder).join(file)).unwrap();
    let row = |(at, line): (usize, &str)| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let mut schema = row[field].take();
        schema["type"] = json!("object");
        (row["name"].as_str().map_or_else(|| format!("tool_{at}"), str::to_owned), schema)
    };
    text.lines().enumerate().map(row).collect()
}

fn specs(file: &str, field: &str) -> Vec<ToolSpec> {
    let plain = tool("plain");
    let spec = |(tool_id, json_schema)| ToolSpec { tool_id, json_schema, output: None, ..plain.clone() };
    schemas(file, field).into_iter().map(spec).collect()
}

#[test]
fn real_tools_lose_nothing_in_dialects_that_support_everything() {
    let specs = specs("real_tools.jsonl", "inputSchema");
    for provider in PROVIDERS {
        let view = provider.view(&specs);
        assert!(view.losses.iter().all(|loss| loss.kind != LossKind::LeftOut), "{}", provider.name);
        if provider.name.starts_with("openai") || provider.name == "mcp" {
            assert_eq!(view.losses, [], "{}", provider.name);
        }
    }
}

#[test]
fn recursive_schemas_are_lowered_to_finite_ones() {
    let specs = specs("recursive_schemas.jsonl", "schema");
    for provider in PROVIDERS {
        let view = provider.view(&specs);
        let is_inlined = ["ollama", "gemini", "gemini-native"].contains(&provider.name);
        let cuts = view.losses.iter().filter(|loss| loss.kind == LossKind::Cut).count();
        assert_eq!(cuts > 0, is_inlined && !specs.is_empty(), "{}: {cuts}", provider.name);
        if provider.name == "mcp" {
            assert_eq!(view.losses, []);
        }
    }
}
