//! `toolwright describe TOOL`: everything about one tool.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use toolwright_contract::Confirmation;
use toolwright_registry::toolset::{Implementation, Tool};

use crate::args::{Common, Format, Source};
use crate::config::Config;
use crate::output;
use crate::toolset;

pub fn run(common: &Common, name: &str, source: &Source) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let tools = toolset::open(source, &config)?;
    let tool = tools.get(&toolset::id_of(&tools, name)).ok_or_else(|| toolset::unknown(&tools, name))?;
    let documentation = tools.documentation(&tool.spec.tool_id).unwrap_or_default();
    match common.format {
        Format::Human => output::data(describe(tool, &documentation)),
        Format::Json => {
            let mut value = serde_json::to_value(&tool.spec)?;
            value["summary"] = json!(tool.summary);
            value["documentation"] = json!(documentation);
            match &tool.implementation {
                Implementation::Module(module) => {
                    value["handlerPath"] = json!(module.path);
                    value["handlerSha256"] = json!(module.sha256);
                }
                Implementation::Mock(response) => {
                    value["implementation"] = json!({ "type": "mock", "mock_response": response });
                }
                Implementation::Native(handler) => {
                    value["implementation"] = json!({ "type": "builtin", "handler": handler });
                }
                Implementation::Http(request) => {
                    value["implementation"] =
                        json!({ "type": "http", "method": request.method, "origin": request.origin });
                }
            }
            output::data_line(serde_json::to_string_pretty(&value)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(tool: &Tool, documentation: &str) -> String {
    let spec = &tool.spec;
    let modes: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
    let confirmation = match &spec.requires_confirmation {
        Confirmation::Always(true) => "always".to_owned(),
        Confirmation::Always(false) => "never".to_owned(),
        Confirmation::Rule(rule) => format!("when {}", rule.when),
    };
    let handler = match &tool.implementation {
        Implementation::Module(module) => module.path.clone(),
        Implementation::Mock(_) => "a mock: the same answer to every call".to_owned(),
        Implementation::Native(name) => format!("{name}, of the program"),
        Implementation::Http(request) => format!("{} {}", request.method, request.origin),
    };
    let rows = [
        ("category", spec.category.to_string()),
        ("effects", spec.side_effects.to_string()),
        ("idempotent", if spec.idempotent { "yes" } else { "no" }.to_owned()),
        ("confirmation", confirmation),
        ("modes", modes.join(", ")),
        ("latency", format!("{} ms", spec.latency_budget_ms)),
        ("handler", handler),
    ];
    let rows: String = rows.iter().map(|(name, value)| format!("  {name:<13} {value}\n")).collect();
    let schema = serde_json::to_string_pretty(&spec.json_schema).unwrap_or_default();
    format!(
        "\x1b[1m{}\x1b[0m {}\n{}\n\n{rows}\n\x1b[1mParameters\x1b[0m\n{schema}\n\n{}\n",
        spec.tool_id,
        spec.version,
        tool.summary,
        documentation.trim_end(),
    )
}
